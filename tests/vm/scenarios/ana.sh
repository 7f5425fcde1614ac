# Every path inaccessible: the storage has to mend that, and no rescan does. Then the storage changes its mind and the
# host does not hear it: the kernel keeps the state that it has read. Kernels since April 2025 read it anew after a scan.
nqn=nqn.2024-01.test.nsheal:ana
new=$(uuid_of 2)

# ana_of STATE: of group 2, on both ports
ana_of() {
    for port in 1 2; do echo "$1" >"$NVMET/ports/$port/ana_groups/2/ana_state"; done
}

subsystem $nqn 1 2
for port in 1 2; do mkdir -p "$NVMET/ports/$port/ana_groups/2"; done
ana_of inaccessible
map $nqn 1
map $nqn 2
echo 0 >"$NVMET/subsystems/$nqn/namespaces/2/enable"
echo 2 >"$NVMET/subsystems/$nqn/namespaces/2/ana_grpid"
echo 1 >"$NVMET/subsystems/$nqn/namespaces/2/enable"
connect $nqn 1 2
conf <<END
[subsystem ana]
nqn = $nqn
namespace = nsid=1
namespace = uuid=$new
END
say "# kernel $(uname -r)"
check "the other group is there" device "$(uuid_of 1)"
check "the inaccessible one has no device" no_device $new
trace_on
check "status says why" status_says $new inaccessible
for run in 1 2 3 4 5 6 7 8 9 10; do nvme-nsheal heal --now; done
check "ten runs, and no rescan" equal 0 rescans
check "the controllers were asked" something sh -c "nvme-nsheal status | tr '\n' ' ' | grep -E 'say +so +too'"

deaf $nqn
ana_of optimized
check "made accessible silently, nothing comes" always 3 no_device $new
check "a probe knows" probe_says $new stale-ana
check "one heal" nvme-nsheal heal --now
check "brings the device" wait_for 10 device $new
check "status has nothing to complain about" status_exits 0
