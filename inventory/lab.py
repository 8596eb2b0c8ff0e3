"""A homelab's hosts, by group. Edit it to be yours.

Every name here is also the name that SSH is given, so your ~/.ssh/config applies (user, key,
port, jump hosts). To set such things here instead, write a pair:

    sparks = [("spark-1", {"ssh_hostname": "192.168.1.21", "ssh_user": "me"}), "spark-2"]

The groups' names choose the settings: `sparks` reads group_data/sparks.py, `rtx50` reads
group_data/rtx50.py, and everything reads group_data/all.py. A setting in a host's pair goes
before its group's, and `--data key=value` goes before everything.
"""

sparks = ["spark-1", "spark-2"]

rtx50 = ["rtx-1"]
