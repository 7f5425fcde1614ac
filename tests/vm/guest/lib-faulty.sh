# SPDX-License-Identifier: LGPL-2.1-or-later
# Verbs for the target that misbehaves; tests/vm/FAULTY.md describes it. A scenario reads them first:
#
#     . /run/vm/guest/lib-faulty.sh

# faulty_target NQN PORT...: starts one, with one controller for each connection to 127.0.0.PORT. It ends with the scenario.
faulty_target() {
    local nqn=$1 port addresses=()
    shift
    # Not the services of the kernel's target: both may serve in one scenario.
    for port; do addresses+=("$port=127.0.0.$port:$((5420 + port))"); done
    # What it has to say goes to the journal, which a failed scenario shows.
    PYTHONPATH=/run/vm/guest systemd-cat -t faulty-target \
        python3 -m faulty run --nqn "$nqn" --control "$(faulty_socket "$nqn")" "${addresses[@]}" &
    wait_for 60 test -S "$(faulty_socket "$nqn")"
}

faulty_socket() { echo "$WORK/faulty-${1##*:}"; }

# faulty NQN COMMAND...: tells that target what to do.
faulty() {
    local socket
    socket=$(faulty_socket "$1")
    shift
    # Isolated and without site: half of the time that it takes.
    python3 -ISs /run/vm/guest/faulty/__main__.py ctl "$socket" "$@"
}

# faulty_attach NQN PORT...: connects and waits for nothing more.
faulty_attach() {
    local nqn=$1 port
    shift
    for port; do
        nvme connect -t tcp -n "$nqn" -a "127.0.0.$port" -s $((5420 + port)) -k 60 -c 1 -l 600 >/dev/null
    done
}

# faulty_connect NQN PORT...: connects, and waits until all that is mapped has a path through each controller.
faulty_connect() {
    faulty_attach "$@"
    wait_for 120 faulty_paths_complete "$@"
}

faulty_paths_complete() {
    local nqn=$1 port
    shift
    for port; do
        [ "$(paths_through "$(faulty_ctrl "$nqn" "$port")")" = "$(faulty "$nqn" namespaces "on=$port" | wc -l)" ] || return 1
    done
}

# faulty_ctrl NQN PORT: the name of the controller that was connected there.
faulty_ctrl() {
    local ctrl
    for ctrl in $(ctrls_of "$1"); do
        if grep -q "traddr=127\.0\.0\.$2," "/sys/class/nvme/$ctrl/address"; then echo "$ctrl"; fi
    done
}

# kernel_rescan CTRL: as an administrator would, and waits until the scan is over.
kernel_rescan() {
    echo 1 >"/sys/class/nvme/$1/rescan_controller"
    sleep 0.5
    quiet 0.5
}
