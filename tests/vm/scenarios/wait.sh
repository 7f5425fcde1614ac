# wait: the device at once where it is there, after a rescan where that is needed, and the reason where it does not come.
# limit: 500
nqn=nqn.2024-01.test.nsheal:wait
other=nqn.2024-01.test.nsheal:wait-50
plugin=/run/vm/docs/node-plugin.sh
wait_one() { nvme-nsheal wait --nqn $nqn "$@"; }
node_of() { echo "/dev/$(device_of "uuid.$(uuid_of "$1")")"; }

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
mask nvme-nsheal.path nvme-nsheal.timer $UNIT

# --- nothing to do
trace_on
start=$(now)
check "what is there is printed, and nothing else" equal "$(node_of 1)" wait_one --uuid "$(uuid_of 1)"
say "# figure: in $(since "$start")"
check "at once" eval '! elapsed "$start" 1.5'
check "by NSID" equal "$(node_of 1)" wait_one --nsid 1
check "both must match" exits 1 wait_one --nsid 2 --uuid "$(uuid_of 1)" --timeout 1s
check "nothing was rescanned" equal 0 rescans

# --- it comes by itself
(sleep 3; map $nqn 2) &
start=$(now)
check "what comes by itself" wait_one --nsid 2 --timeout 30s
check "is waited for" elapsed "$start" 2
check "and seen without a rescan" equal 0 rescans

# --- it was missed
deaf $nqn
map $nqn 3
quiet 1
trace_on
start=$(now)
check "what was missed comes too" wait_one --uuid "$(uuid_of 3)" --json
check "by a rescan of each" equal 2 rescans
check "after the grace time of two seconds" elapsed "$start" 2
say "# figure: in $(since "$start")"
check "its document" something sh -c "nvme-nsheal wait --nqn $nqn --nsid 3 --json | grep -F '\"device\":\"$(node_of 3)\"'"

# --- it does not come
start=$(now)
nvme-nsheal wait --nqn $nqn --nsid 9 --timeout 5s >"$WORK/out" 2>"$WORK/err" && rc=0 || rc=$?
check "what is not mapped: 1" equal 1 echo $rc
check "after its time" elapsed "$start" 5
check "and no later" eval '! elapsed "$start" 9'
check "nothing on stdout" nothing cat "$WORK/out"
check "the state and the evidence on stderr" grep -q 'nsid=9 is unmapped.*list' "$WORK/err"
check "as a document" something sh -c "nvme-nsheal wait --nqn $nqn --nsid 9 --timeout 5s --json | grep -F '\"state\":\"unmapped\"'"
check "a subsystem that is not connected" something sh -c "nvme-nsheal wait --nqn $nqn-not --nsid 9 --timeout 1s 2>&1 | grep -w disconnected"
check "is not rescanned" equal 2 rescans

# --- the administrator's rules hold
conf <<END
[subsystem careful]
nqn = $nqn
action = report
namespace = nsid=3
END
deaf $nqn
map $nqn 4
check "action = report: wait does no more than that" exits 1 wait_one --nsid 4 --timeout 5s
check "no rescan" equal 2 rescans
conf </dev/null
check "without it" wait_one --nsid 4 --grace 0s
check "everything that is configured: nothing" nvme-nsheal wait --configured

# --- a node plugin's day
deaf $nqn
map $nqn 5
quiet 1
trace_on
check "a plugin attaches" equal /dev/nvme0n5 $plugin attach $nqn "$(uuid_of 5)"
check "its drop-in is read" status_exits 0
check "the device can be used" dd if="/dev/nvme0n5" of=/dev/null bs=4k count=1
$plugin detach $nqn "$(uuid_of 5)"
hear $nqn
unmap $nqn 5
check "detached and unmapped" wait_for 30 no_device "$(uuid_of 5)"
before=$(rescans)
nvme-nsheal heal --now
check "no ghost is healed" equal "$before" rescans
check "nothing is expected" something sh -c 'nvme-nsheal status | grep "nothing is expected"'

# --- fifty at once
subsystem $other 3 4
map $other 101
connect $other 3 4
deaf $other
map_range $other 102 151
quiet 1
trace_on
start=$(now)
pids=()
for ((nsid = 102; nsid <= 151; nsid++)); do
    nvme-nsheal wait --nqn $other --uuid "$(uuid_of $nsid)" --timeout 120s >"$WORK/wait-$nsid" 2>"$WORK/said-$nsid" &
    pids+=($!)
done
good=0
for pid in "${pids[@]}"; do if wait "$pid"; then good=$((good + 1)); fi; done
say "# figure: fifty at once took $(since "$start")"
check "fifty waits for fifty namespaces" equal 50 echo $good
check "each has a device of its own" equal 50 sh -c "cat $WORK/wait-* | sort -u | grep -c ^/dev/nvme"
check "at most two rescans of each controller" eval '[ "$(rescans)" -le 4 ]'
say "# figure: $(rescans) rescans"
check "nobody is left" nothing sh -c 'ps -eo comm= | grep ^nvme-nsheal || true'
