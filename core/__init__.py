"""Evenhand's engine: storage, statistics, judging and the widgets that show them."""
