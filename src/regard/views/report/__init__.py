"""The report of a survey: one HTML file, and a page for each of the best examples."""

from regard.views.report.report_file import write_report

__all__ = ["write_report"]
