"""Tags of the lab for roll-outs: a good one, and those that fail in their own way."""

from __future__ import annotations

NEW = '"2026-06-18-v0.23.0-dflashfix"'
FAULTS = """\
kind: image
name: aeon-vllm-ultimate
extends: true
tags:
  lab-never-healthy: {date: 2026-07-02, vllm: 0.24.0, source: the lab}
  lab-wedge: {date: 2026-07-02, vllm: 0.24.0, source: the lab}
  lab-crash: {date: 2026-07-02, vllm: 0.24.0, source: the lab}
  lab-oom: {date: 2026-07-02, vllm: 0.24.0, source: the lab}
  lab-garbage: {date: 2026-07-02, vllm: 0.24.0, source: the lab}
"""
#: Short deadlines, so that what never answers is known soon.
DEADLINES = '"port": 8000, "boot_seconds": 12, "first_answer_seconds": 6,'
