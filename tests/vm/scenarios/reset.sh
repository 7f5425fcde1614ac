# A controller goes away in the middle of a run that is asking it: its own findings say so, all others are healed.
# limit: 400
. /run/vm/guest/lib-faulty.sh

lost=nqn.2024-01.test.nsheal:lost
well=nqn.2024-01.test.nsheal:well

faulty_target $lost 1 2
faulty $lost map 1
faulty_connect $lost 1 2
faulty_target $well 3
faulty $well map 3
faulty_connect $well 3
conf <<END
[defaults]
grace = 1s
[subsystem lost]
nqn = $lost
namespace = nsid=5
[subsystem well]
nqn = $well
namespace = nsid=6
END
mask nvme-nsheal.path

# one of two: it goes while it owes an answer
faulty $lost map 5 silent
faulty $well map 6 silent
faulty $lost fault identify cns=2 late=8 on=1 times=2
quiet 1
faulty $lost forget
trace_on
nvme-nsheal heal >"$WORK/heal" 2>&1 &
run=$!
check "it is being asked" wait_for 30 at_least 1 faulty $lost count identify cns=2 on=1
faulty $lost close on=1
check "it is gone" wait_for 30 equal connecting state_of_ctrl "$(faulty_ctrl $lost 1)"
check "the other subsystem is healed" wait_for 60 device "$(uuid_of 6)"
check "and by its other controller" wait_for 60 device "$(uuid_of 5)"
check "the run ends well" wait $run
check "by two rescans" equal 2 rescans
check "all there" status_exits 0

# both of two
sed -i s/nsid=5/nsid=7/ "$CONF"
faulty $lost map 7 silent
faulty $lost fault identify cns=2 late=8 on=2 times=2
quiet 1
faulty $lost forget
trace_on
nvme-nsheal heal >"$WORK/heal" 2>&1 &
run=$!
check "the last one is being asked" wait_for 30 at_least 1 faulty $lost count identify cns=2 on=2
faulty $lost close on=2
check "the run ends well as well" wait $run
check "unready, or not known" status_says 'nsid=7|NSID 7' 'unready|unknown'
check "no rescan" equal 0 rescans
check "status exits with 1" status_exits 1
faulty $lost open
check "when they are back the kernel finds it" wait_for 60 device "$(uuid_of 7)"
check "all is there" wait_for 30 status_exits 0
