"""Tests of the fabric between hosts: ping, ib_write_bw and an all-gather."""
