"""Hosts of a homelab, by group. Replace them with your own hosts.

SSH connects to these names, so your ~/.ssh/config applies (user, key, port, jump hosts). To set
the connection here instead, write a pair of name and settings:

    sparks = [("spark-1", {"ssh_hostname": "192.168.1.21", "ssh_user": "me"}), "spark-2"]

A group's name selects its settings: `sparks` reads group_data/sparks.py, and `rtx50` reads
group_data/rtx50.py. Every host also reads group_data/all.py. A setting in a host's pair overrides
the group's setting, and `--data key=value` overrides both.
"""

sparks = ["spark-1", "spark-2"]

rtx50 = ["rtx-1"]
