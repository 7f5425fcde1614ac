# The verbs that scenarios are written in. tests/vm/README.md lists them.
# Sourced by guest/main and, for each scenario, by guest/scenario; file descriptor 3 is the result channel.

NVMET=/sys/kernel/config/nvmet
TRACE=/sys/kernel/tracing
BACKING=/dev/loop7          # one device serves every namespace: nobody looks at the data
UNIT=nvme-nsheal.service
CONF=/etc/nvme-nsheal.conf
FIRST_ONLY=$([ -e /run/vm/without-product ] && echo yes)

say() { printf '%s\n' "$*" >&3; }
# tell TEXT: a line of a timeline, with the seconds since the scenario began.
tell() { say "tell $(awk -v a="$BEGAN" '{ printf "%.1f", $1 - a }' /proc/uptime) $*"; }
now() { local up _; read -r up _ </proc/uptime; echo "$up"; }
product_installed() { [ -x /usr/sbin/nvme-nsheal ]; }

# --- checks ---------------------------------------------------------------------------------------------------------

# check TEXT COMMAND...: the command must succeed. What it left in FIGURE is shown with the result.
check() { judge yes "$@"; }
# check_not TEXT COMMAND...: the command must fail. Only for commands that cannot fail for another reason.
check_not() { judge no "$@"; }

judge() {
    local want=$1 text=$2 got=no
    shift 2
    FIGURE=
    if "$@" >"$WORK/output" 2>&1; then got=yes; fi
    if [ $got = "$want" ]; then
        say "ok $NAME: $text${FIGURE:+ ($FIGURE)}"
        return 0
    fi
    say "not ok $NAME: $text${FIGURE:+ ($FIGURE)}"
    failed=yes
    say "#   command: $*"
    excerpt 8 <"$WORK/output"
    # Without the product the first failure is what is asked for; the waits of the others only cost time.
    [ -z "$FIRST_ONLY" ] || exit 1
}

excerpt() { tail -n "$1" | sed 's/^/#   /' >&3; }

# wait_for SECONDS COMMAND...: until it succeeds; false if it does not in time. FIGURE says how long it took.
wait_for() {
    local limit=$1 start
    shift
    # Without the product nothing will come; half a minute shows that.
    if [ -n "$FIRST_ONLY" ] && [ "$limit" -gt 30 ]; then limit=30; fi
    start=$(now)
    until "$@"; do
        if elapsed "$start" "$limit"; then FIGURE="not within $limit s"; return 1; fi
        sleep 0.2
    done
    FIGURE=$(since "$start")
}

# always SECONDS COMMAND...: the command succeeds each time in that long.
always() {
    local limit=$1 start
    shift
    start=$(now)
    until elapsed "$start" "$limit"; do
        if ! "$@"; then FIGURE="not after $(since "$start")"; return 1; fi
        sleep 0.3
    done
    FIGURE="for $limit s"
}

elapsed() { awk -v a="$1" -v n="$2" '{ exit !($1 - a >= n) }' /proc/uptime; }
since() { awk -v a="$1" '{ printf "%.1f s", $1 - a }' /proc/uptime; }

# equal WANTED COMMAND...: the command's output is that.
equal() {
    local wanted=$1 got
    shift
    got=$("$@") || got="failed: $got"
    FIGURE=$got
    [ "$got" = "$wanted" ] || { echo "wanted $wanted, got $got"; return 1; }
}
# at_least NUMBER COMMAND...
at_least() {
    local wanted=$1 got
    shift
    got=$("$@")
    FIGURE=$got
    [ "$got" -ge "$wanted" ] || { echo "wanted at least $wanted, got $got"; return 1; }
}
# exits CODE COMMAND...
exits() {
    local wanted=$1 rc=0
    shift
    "$@" || rc=$?
    FIGURE="exit code $rc"
    [ $rc = "$wanted" ]
}

# figure_of_bare_reads TEXT: for comparison, the CPU time of reading nsid and wwid of each head once, without starting a program.
figure_of_bare_reads() {
    say "# figure: $1: $(python3 - <<'END'
import glob, os, time
names = [f"{head}/{name}" for head in glob.glob("/sys/class/nvme-subsystem/*/nvme*n*") for name in ("nsid", "wwid")]
before = time.process_time()
for turn in range(5):
    for name in names:
        fd = os.open(name, os.O_RDONLY)
        os.read(fd, 4096)
        os.close(fd)
print(f"{(time.process_time() - before) / 5:.3f} s CPU, {len(names)} files")
END
    )"
}

nothing() { equal '' "$@"; }
something() { [ -n "$("$@")" ]; }
not() { ! "$@"; }

# figure_of TEXT COMMAND...: reports its CPU time, the mean of five. Checks nothing.
figure_of() {
    local text=$1 turn
    shift
    say "# figure: $text: $(
        TIMEFORMAT='%U %S %R'
        { time for turn in {1..5}; do "$@" >/dev/null 2>&1; done; } 2>&1 |
            awk '{ printf "%.3f s CPU, %.3f s elapsed", ($1 + $2) / 5, $3 / 5 }'
    )"
}

# --- the target -----------------------------------------------------------------------------------------------------

# subsystem NQN PORT...: a new subsystem of the kernel's target, on the ports 127.0.0.PORT.
subsystem() {
    local nqn=$1 port
    shift
    mkdir "$NVMET/subsystems/$nqn"
    echo 1 >"$NVMET/subsystems/$nqn/attr_allow_any_host"
    for port; do open_port "$port" "$nqn"; done
}

open_port() {       # PORT NQN
    local dir=$NVMET/ports/$1
    if [ ! -d "$dir" ]; then
        mkdir "$dir"
        echo tcp >"$dir/addr_trtype"
        echo ipv4 >"$dir/addr_adrfam"
        echo "127.0.0.$1" >"$dir/addr_traddr"
        echo $((4420 + $1)) >"$dir/addr_trsvcid"
    fi
    ln -s "$NVMET/subsystems/$2" "$dir/subsystems/$2"
}

# close_port PORT NQN: the target drops the controllers there, and nobody answers a reconnect.
close_port() {
    rm "$NVMET/ports/$1/subsystems/$2"
    rmdir "$NVMET/ports/$1"
}

uuid_of() { printf '5ca1ab1e-0000-4000-8000-%012d' "$1"; }
nguid_of() { printf '5ca1ab1e%024d' "$1"; }

# map NQN NSID [uuid=UUID] [nguid=NGUID]: without uuid= it gets that of uuid_of NSID.
# Whether the host hears of it depends on whether its controllers were made deaf.
map() {
    local dir=$NVMET/subsystems/$1/namespaces/$2 uuid nguid=
    uuid=$(uuid_of "$2")
    shift 2
    # With no argument, local lists what there is.
    if [ $# != 0 ]; then local "$@"; fi
    mkdir "$dir"
    fill_namespace "$dir" "$uuid" "$nguid"
}

fill_namespace() {  # DIR UUID NGUID
    echo "$BACKING" >"$1/device_path"
    echo "$2" >"$1/device_uuid"
    [ -z "$3" ] || echo "$3" >"$1/device_nguid"
    echo 1 >"$1/enable"
}

# map_range NQN FIRST LAST: as map for each, in one process: hundreds take seconds.
map_range() {
    local nqn=$1 nsid uuid
    for ((nsid = $2; nsid <= $3; nsid++)); do echo "$NVMET/subsystems/$nqn/namespaces/$nsid"; done | xargs mkdir
    for ((nsid = $2; nsid <= $3; nsid++)); do
        printf -v uuid '5ca1ab1e-0000-4000-8000-%012d' "$nsid"
        fill_namespace "$NVMET/subsystems/$nqn/namespaces/$nsid" "$uuid" ''
    done
}

unmap() {           # NQN NSID
    echo 0 >"$NVMET/subsystems/$1/namespaces/$2/enable"
    rmdir "$NVMET/subsystems/$1/namespaces/$2"
}

# --- the host -------------------------------------------------------------------------------------------------------

# ctrls_of NQN: the names of its controllers. Looked up by NQN: numbers are in no order.
ctrls_of() {
    local dir ctrl
    for dir in /sys/class/nvme-subsystem/nvme-subsys*; do
        [ -r "$dir/subsysnqn" ] && [ "$(<"$dir/subsysnqn")" = "$1" ] || continue
        for ctrl in "$dir"/nvme*; do
            [[ ${ctrl##*/} =~ ^nvme[0-9]+$ ]] && echo "${ctrl##*/}"
        done
    done
    return 0
}

# connect NQN PORT...: connects, and waits until everything mapped is there with a path through each controller:
# what is mapped after that, the kernel's first scan did not see.
connect() {
    local nqn=$1 port
    shift
    # A long keep-alive time: the emulated machine must not lose a controller because it is busy.
    for port; do
        nvme connect -t tcp -n "$nqn" -a "127.0.0.$port" -s $((4420 + port)) -k 60 -c 1 -l 600 >/dev/null
    done
    wait_for 120 all_mapped_have_paths "$nqn"
}

disconnect() { nvme disconnect -n "$1" >/dev/null; }

all_mapped_have_paths() {
    local wanted ctrl
    wanted=$(enabled_namespaces "$1")
    for ctrl in $(ctrls_of "$1"); do
        [ "$(paths_through "$ctrl")" = "$wanted" ] || return 1
    done
}

enabled_namespaces() { cat "$NVMET/subsystems/$1"/namespaces/*/enable 2>/dev/null | grep -cx 1; }
paths_through() { find -H "/sys/class/nvme/$1" -maxdepth 1 -name 'nvme*n*' | wc -l; }
state_of_ctrl() { cat "/sys/class/nvme/$1/state"; }
all_ctrls_are() {   # STATE NQN
    local ctrl
    for ctrl in $(ctrls_of "$2"); do
        [ "$(state_of_ctrl "$ctrl")" = "$1" ] || return 1
    done
}

# deaf NQN: every controller of it stops sending notices (feature 0Bh), hear NQN: sends them again.
deaf() { set_notices "$1" 0; }
hear() { set_notices "$1" 0x900; }
set_notices() {
    local ctrl
    for ctrl in $(ctrls_of "$1"); do
        nvme set-feature "/dev/$ctrl" -f 0x0b --value="$2" >/dev/null
    done
}

# device_of uuid.UUID: the names of the visible disks with that wwid.
device_of() {
    grep -lx "$1" /sys/class/block/nvme*/wwid 2>/dev/null | sed -nE 's|.*/(nvme[0-9]+n[0-9]+)/wwid$|\1|p'
}
# device UUID: it has a block device with a node.
device() {
    local name
    name=$(device_of "uuid.$1" | head -n1)
    [ -n "$name" ] && [ -b "/dev/$name" ]
}
no_device() { not device "$1"; }
name_ends_in() { [[ $(device_of "uuid.$2") = nvme*"$1" ]]; }    # n2 UUID
# paths_of UUID: how many live controllers have a path to it.
paths_of() {
    local ctrl paths=0
    for ctrl in $(grep -lx "uuid.$1" /sys/class/nvme/nvme*/nvme*n*/wwid 2>/dev/null | cut -d/ -f5); do
        [ "$(state_of_ctrl "$ctrl")" != live ] || paths=$((paths + 1))
    done
    echo $paths
}
devices_of_range() {    # FIRST LAST: how many of uuid_of FIRST..LAST have a disk
    cat /sys/class/block/nvme*/wwid 2>/dev/null | sort -u |
        awk -F- -v a="$1" -v b="$2" '/^uuid.5ca1ab1e/ && $5 + 0 >= a && $5 + 0 <= b' | wc -l
}

# --- the product ----------------------------------------------------------------------------------------------------
# Without it these do nothing, so that a scenario then fails by what it checks and not by a missing file.

# conf, drop_in NAME: standard input becomes the configuration. Renamed into place as the design asks of writers.
conf() { write_file "$CONF"; }
drop_in() { mkdir -p "$CONF.d"; write_file "$CONF.d/$1"; }
write_file() { cat >"$1.new" && chmod 644 "$1.new" && mv "$1.new" "$1"; }

timer_on() { ! product_installed || systemctl enable --now nvme-nsheal.timer; }
path_on() { ! product_installed || systemctl enable --now nvme-nsheal.path; }
# mask UNIT...: as an administrator would, so that the scenario's only way to start the service is the one it is about.
mask() { ! product_installed || systemctl mask --now "$@"; }
run_service() { ! product_installed || systemctl start "$UNIT"; }

# fast_timer SECONDS: a run each so many seconds.
fast_timer() {
    mkdir -p /etc/systemd/system/nvme-nsheal.timer.d
    # An empty assignment resets all of the timer's expressions.
    cat >/etc/systemd/system/nvme-nsheal.timer.d/vm.conf <<END
[Timer]
OnActiveSec=
OnActiveSec=$1
OnUnitInactiveSec=$1
AccuracySec=100ms
RandomizedDelaySec=0
END
    systemctl daemon-reload
}

service_runs() { journal_of_manager MESSAGE_ID=7d4958e842da4a758f6c1cdc7b36dcc5 | wc -l; }      # "Starting ..."
service_is_idle() { systemctl show -P ActiveState "$UNIT" | grep -Eqx 'inactive|failed'; }
service_is_running() { [ "$(systemctl show -P ActiveState "$UNIT")" = activating ]; }
service_failed() { systemctl is-failed -q "$UNIT"; }

# journal: what the service itself said since the scenario began.
journal() { journal_entries -o cat "_SYSTEMD_UNIT=$UNIT"; }
journal_of_manager() { journal_entries -o cat _PID=1 "UNIT=$UNIT" "$@"; }
# By time: with --after-cursor and a filter, journalctl before 254 leaves out the first match.
journal_entries() { journalctl --sync; journalctl -q --no-pager --since="@$SINCE" "$@"; }
journal_says() { journal | grep -Eq -- "$1"; }

status() { nvme-nsheal status "$@"; }
status_exits() { exits "$1" status; }
# status_says IDENTITY STATE: one line of the table has both. probe_says: the same of status --probe.
status_says() { line_of status "$@"; }
probe_says() { line_of 'status --probe' "$@"; }
line_of() {
    local table
    table=$($1) || :
    echo "$table"
    grep -E -- "$2" <<<"$table" | grep -Eqw -- "$3"
}

# --- what went over the wire ----------------------------------------------------------------------------------------

# trace_on: counts from here. Twice in a scenario: counts start again.
trace_on() {
    echo 0 >$TRACE/tracing_on
    echo 8192 >$TRACE/buffer_size_kb
    echo 'qid == 0' >$TRACE/events/nvme/nvme_setup_cmd/filter
    echo 1 >$TRACE/events/nvme/nvme_setup_cmd/enable
    echo 1 >$TRACE/events/nsheal/queue_scan/enable
    echo >$TRACE/trace
    echo 1 >$TRACE/tracing_on
}
trace_off() { echo 0 >$TRACE/events/enable; echo >$TRACE/trace; }

# admin_commands: one line each, keep-alives left out: those are the kernel's.
admin_commands() { grep nvme_setup_cmd: $TRACE/trace | grep -v nvme_admin_keep_alive; return 0; }

# scans CTRL: how many scans the kernel made there, whoever asked. Each starts by Identify CNS 06h, which nothing else sends.
scans() { admin_commands | grep -Ec "nvme_setup_cmd: $1: .*nvme_admin_identify cns=6,"; return 0; }
scans_of_all() {    # NQN: those numbers side by side
    local ctrl
    for ctrl in $(ctrls_of "$1"); do scans "$ctrl"; done | xargs
}

# rescans: how many the product asked for, of any controller.
rescans() { grep 'queue_scan:' $TRACE/trace | grep -c '^ *nvme-nsheal'; return 0; }

# quiet SECONDS: waits until no controller has got an admin command for so long: scans under way have ended.
quiet() {
    local before='' after
    while after=$(admin_commands | wc -l); [ "$after" != "$before" ]; do
        before=$after
        sleep "$1"
    done
}

# --- before and after a scenario ------------------------------------------------------------------------------------

begin_scenario() {
    failed=
    BEGAN=$(now)
    WORK=$(mktemp -d /run/vm/work.XXXXXX)
    SINCE=$EPOCHREALTIME
    trace_on
}

# A verb failed outside a check: the scenario ends there.
broken() { [ -n "$FIRST_ONLY" ] || say "# $NAME: line $1: failed: $2"; failed=yes; }

end_scenario() {
    local rc=$?
    set +e
    trap - ERR
    # shellcheck disable=SC2046
    kill $(jobs -p) 2>/dev/null
    if [ -n "$failed" ] || [ $rc != 0 ]; then [ -n "$FIRST_ONLY" ] || evidence; fi
    rm -rf "$WORK"
}

evidence() {
    say '#   --- the units'
    systemctl --no-pager --no-legend list-units --all 'nvme-nsheal*' 2>&1 | excerpt 5
    say '#   --- journal'
    journal_entries -o short-monotonic -g 'nvme|nsheal' 2>&1 | grep -v ' nvmet: adding nsid ' | cut -c1-220 | excerpt 30
    if product_installed; then
        say '#   --- status'
        timeout 20 nvme-nsheal status 2>&1 | excerpt 20
    fi
    say '#   --- controllers and disks'
    (cd /sys/class/nvme && grep -s . nvme*/state) 2>&1 | excerpt 8
    (cd /sys/class/block && grep -s . nvme*/wwid) 2>&1 | excerpt 8
}

# Everything back to an installed, unconfigured product on a machine without controllers.
clean() {
    {
        trace_off
        if product_installed; then
            systemctl unmask nvme-nsheal.timer nvme-nsheal.path "$UNIT"
            systemctl disable --now nvme-nsheal.timer nvme-nsheal.path
            systemctl stop "$UNIT"
        fi
        rm -rf /etc/systemd/system/nvme-nsheal.*.d /run/systemd/system/nvme-nsheal.*.d
        rm -rf "$CONF" "$CONF.d" /run/nvme-nsheal/*
        [ ! -e "/run/vm/product$CONF" ] || cp -a "/run/vm/product$CONF" "$CONF"
        systemctl daemon-reload
        systemctl reset-failed 'nvme-nsheal*'
        nvme disconnect-all
        clean_target
        udevadm settle
    } >/dev/null 2>&1
    [ -z "$(find /sys/class/nvme/ $NVMET/subsystems $NVMET/ports -mindepth 1 -maxdepth 1)" ]
}

clean_target() {
    (
        shopt -s nullglob
        rm -f $NVMET/ports/*/subsystems/*
        rmdir $NVMET/ports/*/ana_groups/[2-9] || :
        rmdir $NVMET/ports/* $NVMET/subsystems/*/namespaces/* $NVMET/subsystems/*
    )
}
