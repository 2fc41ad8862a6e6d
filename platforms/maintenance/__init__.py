"""Planned maintenance: which nodes will be down when, and the calendar that says so."""
