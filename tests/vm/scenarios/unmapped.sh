# Expected, but not mapped to this host: a rescan cannot help, and the unit is not red for it.
nqn=nqn.2024-01.test.nsheal:unmapped
away=$(uuid_of 2)

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
quiet 1
conf <<END
[subsystem unmapped]
nqn = $nqn
namespace = uuid=$away
grace = 1s
END
fast_timer 2s
trace_on
timer_on
check "several runs" wait_for 90 at_least 3 service_runs
check "status says unmapped" wait_for 30 status_says $away unmapped
check "and exits 1" status_exits 1
check "no rescan" equal 0 rescans
check "no scan" equal "0 0" scans_of_all $nqn
check_not "the unit is not failed" service_failed
check "the journal names it" journal_says $away
