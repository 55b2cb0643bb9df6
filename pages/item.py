"""What did the judge say about this one answer, every time?"""

from core.ui import cached
from core.ui.page import open_page, say_outcomes, say_scope
from core.ui.scope import select_scope

open_page("Item", "What did the judge say about this one answer, every time?")
scope = select_scope()
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
