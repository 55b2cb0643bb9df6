"""Measures Evenhand beside other libraries: `make bench` writes docs/benchmarks.md."""
