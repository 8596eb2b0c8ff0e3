"""Monitoring by Prometheus and Grafana: targets, alert rules and a dashboard, as files.

The alert rules are the doctor's and the watch's: the same names, thresholds, reasons and remedies.
"""
