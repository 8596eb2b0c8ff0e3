"""FAKE for a Spark's ConnectX-7: its part of /sys and the output of tools, as captured on Sparks
(NVIDIA/dgx-spark-playbooks, eugr/spark-vllm-docker), for tests and for virtual hosts.
"""
