"""The house of the code: which part may import which."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ALLOWED = {
    "core.stats": set(),
    "core.figures": {"core.stats"},
    "core.store": set(),
    "core.ingest": {"core.store"},
    "core.judge": {"core.store"},
    "core.ui": {"core.store", "core.judge", "core.stats"},
    "core.cli": {"core.store", "core.ingest", "core.judge", "core.stats", "core.figures"},
    "pages": {"core.ui", "core.figures", "core.stats"},
}
"""ui may name the statistics it caches, which DESIGN's sketch leaves out."""

PAGES_WITH_MORE = {"pages/datasets.py": {"core.ingest"}, "pages/launch.py": {"core.judge"}}
"""Pages that start work themselves, and with which part."""

FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").glob("*.py")])


def part(module: str) -> str:
    names = module.split(".")
    if names[0] != "core":
        return names[0]
    return "core.cli" if names[1].startswith("cli_") else ".".join(names[:2])


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{name.name}" for name in node.names} if node.module == "core" else {node.module}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_part_imports_what_it_may_not(path: Path) -> None:
    own = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
    reached = {part(name) for name in imports(path) if name.startswith(("core.", "pages"))}
    more = PAGES_WITH_MORE.get(path.relative_to(ROOT).as_posix(), set())
    assert reached - {own} <= ALLOWED.get(own, set()) | more


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_pages_and_ui_import_streamlit(path: Path) -> None:
    own = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert own in ("core.ui", "pages") or not any(name.split(".")[0] == "streamlit" for name in imports(path))
