# Notices masked as if a log had never been read, or switched off: a rescan alone would have to be repeated for ever. After
# one heal the next namespaces come by themselves.
# limit: 400
. /run/vm/guest/lib-faulty.sh

nqn=nqn.2024-01.test.nsheal:masked
off=nqn.2024-01.test.nsheal:off
target() { faulty $nqn "$@"; }
feature_0b() {      # NQN: of each of its controllers
    local ctrl
    for ctrl in $(ctrls_of "$1"); do nvme get-feature "/dev/$ctrl" -f 0x0b | grep -o '0x0*900$' | sed 's/0x0*/0x/'; done | xargs
}
set_features() { admin_commands | grep -c nvme_admin_set_features; return 0; }

faulty_target $nqn 1 2
target map 1
faulty_connect $nqn 1 2
conf <<END
[subsystem masked]
nqn = $nqn
namespace = nsid=2
grace = 1s
END
target mask ns
target map 2
check "without help it stays hidden" always 3 no_device "$(uuid_of 2)"
check "its notices were masked" equal 2 target count notice outcome=masked
target forget
trace_on
run_service
check "the product heals it" wait_for 60 device "$(uuid_of 2)"
check "each log was read, so that it counts" equal 2 target count get-log lid=4 rae=0
check "before anything was rescanned" equal 2 rescans
check "feature 0Bh was in order and was left alone" equal 0 target count set-features
quiet 1
target map 3
check "the next one comes by itself" wait_for 20 device "$(uuid_of 3)"
check "with a path through both controllers" wait_for 10 equal 2 paths_of "$(uuid_of 3)"
target map 4
check "and the one after it" wait_for 20 device "$(uuid_of 4)"
check "without us" equal 2 rescans
check "it was one run" equal 1 service_runs

# the same with the kernel's target and feature 0Bh
subsystem $off 1 2
map $off 11
connect $off 1 2
conf <<END
[subsystem off]
nqn = $off
namespace = nsid=12
grace = 1s
END
deaf $off
map $off 12
check "switched off: without help it stays hidden" always 3 no_device "$(uuid_of 12)"
trace_on
run_service
check "the product heals that" wait_for 60 device "$(uuid_of 12)"
check "by setting a feature of each" equal 2 set_features
check "which switches the notices on" equal "0x900 0x900" feature_0b $off
quiet 1
map $off 13
check "the next of those comes by itself" wait_for 20 device "$(uuid_of 13)"
map $off 14
check "and the one after that" wait_for 20 device "$(uuid_of 14)"
check "two rescans in all" equal 2 rescans

# who does not want it
conf <<END
[subsystem off]
nqn = $off
namespace = nsid=15-17
grace = 1s
rearm = no
END
deaf $off
trace_on
for nsid in 15 16 17; do
    map $off $nsid
    check "with rearm = no NSID $nsid stays hidden" always 2 no_device "$(uuid_of $nsid)"
    quiet 1
    run_service
    check "and is healed as well" device "$(uuid_of $nsid)"
done
check "no feature was changed" equal 0 set_features
check "the third time advice is given for each controller" equal 2 eval 'journal | grep -c "rearm = yes"'
