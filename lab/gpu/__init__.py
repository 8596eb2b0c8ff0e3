"""A lab with real GPUs, on a machine that has an NVIDIA GPU and no network.

The lab brings up a depot (registry, hub) and one virtual host for each GPU (systemd, SSH, Docker,
the machine's own driver and GPU), all on that machine. The roles deploy to these hosts as to any
host.

1. `make gpu-pack`, on a machine with Debian's and Python's packages: the lab's base tree, the
   wheels of vLLM and of the controller, cut into eight parts of at most 50 MiB in `.gpu/parts`. The
   step takes about 4 minutes of one core and 2 GB of disk.
2. On the GPU machine, in a copy of the checkout: `lab/gpu/start.sh receive FOLDER` for each part,
   in order (an archive is unpacked as soon as it is complete), and after the first part
   `lab/gpu/start.sh make`: weights (5 s) and image (30 s) are made meanwhile.
3. `lab/gpu/start.sh up` on the GPU machine takes 20 s. If everything is on one machine, `make gpu`
   does steps 2 and 3.
4. `lab/gpu/start.sh run COMMAND`: a command of the controller, such as `sparkwright status
   inventory/gpu.py`, or `python -m lab.gpu.prove deploy` (3 minutes).

The GPU machine needs root, a driver of 580 or newer, `xz`, `dpkg`, `tar`, 64 GB of memory, 40 GB of
disk, and a Python 3.12 with torch, from which the image of vLLM is made. Nothing resets the GPU or
changes its settings.

Three parts are fake: NVIDIA's container toolkit (`fakes/`), which no configured package index has;
the weights, which have a real shape and format but generate one sentence; the image, which has the
layout of `vllm/vllm-openai` and other bytes.

Known limit: Docker in the hosts has no control group for `pids_limit`. Four hosts on a machine with
four H200 kept to their own GPU (2026-11-28), each with a lane of its own steps (`start.sh lane`).
"""
