#!/bin/bash
# The lab of real GPUs, on a machine with an NVIDIA GPU, root, and nothing else: lab/gpu/__init__.py.
#   start.sh receive FOLDER    take a carried part; what is whole is unpacked in the background
#   start.sh make              make weights and image, in the background
#   start.sh up                wait for both, bring up depot and hosts, push the image
#   start.sh all               all of this, from the parts in .gpu/parts
#   start.sh run COMMAND...    run a command of the controller, in the site's folder
#   start.sh lane N COMMAND... the same for host N alone, in a copy of the site: lanes run at once
set -eu
cd "$(dirname "$0")/../.."
site=$PWD home=/srv/gpu-lab control=/srv/gpu-lab/control state=/var/lib/sparkwright-lab
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1 PYTHONUNBUFFERED=1

refuse() { echo "lab/gpu: $*" >&2; exit 2; }
[ "$(id -u)" = 0 ] || refuse "machines, mounts and bridges are root's: run it with sudo"
[ -c /dev/nvidia0 ] || refuse "there is no /dev/nvidia0: this machine has no NVIDIA GPU with a driver"
gpus=$(nvidia-smi -L | wc -l)

wait_for() { # FILE SECONDS
    for _ in $(seq $(($2 * 5))); do [ -e "$1" ] && return; sleep 0.2; done
    refuse "$1 is not there after $2 s: $(tail -n 3 $home/*.log 2>/dev/null)"
}

depot() {
    mountpoint -q $home/depot && return
    mkdir -p $home/depot; mount -t tmpfs -o size=64g,mode=755 tmpfs $home/depot
    mkdir -p $home/depot/hub $home/depot/registry
}

# A Debian tree of its own has systemd-nspawn, ssh, ip, and Python for the controller. It is the root
# of a mount namespace: what enters a container's or a host's namespaces must not end outside of it.
enter() {
    [ -e $home/driver/ready ] && return
    wait_for $home/.base.done 180; wait_for $home/.controller.done 180
    mkdir -p $control $home/driver/lib
    cp -a $home/base/. $control/; dpkg -x $home/controller/systemd-container.deb $control
    rm -f $control/etc/machine-id; tr -d - </proc/sys/kernel/random/uuid >$control/etc/machine-id
    for name in cpu cpuset io memory pids; do
        echo "+$name" >/sys/fs/cgroup/cgroup.subtree_control || true
    done 2>/dev/null
    libraries=/usr/local/nvidia/lib64
    [ -d $libraries ] || libraries=$(dirname "$(ldconfig -p | awk '/libcuda.so.1/{print $NF; exit}')")
    cp "$(readlink -f "$(command -v nvidia-smi)")" $home/driver/nvidia-smi
    for name in libcuda.so libnvidia-{ml,ptxjitcompiler,nvvm,gpucomp}.so; do
        cp -a "$libraries/$name"* $home/driver/lib/ 2>/dev/null || true
    done
    mkdir -p $control/srv/{driver,site,controller} $control/.outside $control$state/depot .sparkwright/cache
    cp $home/controller/runtime/* .sparkwright/cache/
    cache=$(python3 -c 'from lab import base; print(base.path())')
    mkdir -p "$control$(dirname "$cache")"; mv $home/base "$control$cache"
    setsid unshare --mount --propagation private lab/gpu/start.sh hold >$home/hold.log 2>&1 </dev/null &
    wait_for $home/driver/ready 30
    run python3 -m venv --without-pip /opt/controller
    echo /srv/controller >$control/opt/controller/lib/python3.13/site-packages/lab.pth
    printf '#!/opt/controller/bin/python\nimport sys\nfrom pyinfra_cli.main import main\n%s\n' \
        'sys.exit(main())' >$control/opt/controller/bin/pyinfra
    printf '#!/bin/sh\nexec /opt/controller/bin/python -m sparkwright "$@"\n' >$control/opt/controller/bin/sparkwright
    chmod 755 $control/opt/controller/bin/{pyinfra,sparkwright}
}

hold() { # makes the namespace and stays in it
    mount --bind $control $control
    for name in proc sys dev; do mount --rbind /$name $control/$name; done
    mount -t tmpfs tmpfs $control/run
    mount --bind $home/driver $control/srv/driver; mount --bind "$site" $control/srv/site
    mount --bind $home/controller $control/srv/controller
    mount --bind $home/depot $control$state/depot
    echo $$ >$home/holder
    cd $control; pivot_root . .outside; cd /; umount -l /.outside
    touch /srv/driver/ready
    exec sleep infinity
}

run() {
    nsenter --target "$(cat $home/holder)" --mount \
        env -i PATH=/opt/controller/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        LAB_GPUS="$gpus" LAB_GPU_FIRST="${first:-1}" PYTHONUNBUFFERED=1 \
        PYTHONDONTWRITEBYTECODE=1 sh -c "cd ${folder:-/srv/site}"' && exec "$@"' sh "$@"
}

lane() { # HOST COMMAND...
    first=$1 gpus=1 folder=/srv/lane-$1; shift
    if [ ! -d "$control$folder" ]; then
        mkdir -p "$control$folder"
        tar -C "$site" --exclude=./.git --exclude=./.gpu --exclude=./.sparkwright -c . | tar -C "$control$folder" -x
        mkdir -p "$control$folder/.sparkwright"
        cp -a "$site/.sparkwright/cache" "$control$folder/.sparkwright/"
    fi
    run "$@"
}

case ${1:-} in
receive) depot; python3 -m lab.gpu.receive "$2" ;;
make)
    depot
    # The next call replaces the files of the working tree, so the background has its own copy.
    mkdir -p $home/tree; cp -a lab sparkwright templates $home/tree/; cd $home/tree
    setsid python3 -m lab.gpu.weights >$home/weights.log 2>&1 </dev/null &
    setsid lab/gpu/start.sh image >$home/image.log 2>&1 </dev/null &
    ;;
image) wait_for $home/.site.done 900; python3 -m lab.gpu.image build ;;
up)
    depot; enter
    run python3 -m lab.gpu.up "$gpus"
    wait_for $home/image.json 300; python3 -m lab.gpu.image push
    wait_for $home/depot/hub/repositories/lab/qwen3-8b.json 300
    ;;
all)
    [ -d .gpu/parts ] || refuse "there are no parts in .gpu/parts: run 'make gpu-pack'"
    for part in .gpu/parts/*/; do lab/gpu/start.sh receive "$part"; done
    lab/gpu/start.sh make; lab/gpu/start.sh up
    ;;
hold) hold ;;
run) shift; run "$@" ;;
lane) shift; lane "$@" ;;
*) sed -n 2,8p lab/gpu/start.sh; exit 2 ;;
esac
