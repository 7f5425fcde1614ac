# Everything is there: 20 runs ask no controller anything and say nothing.
# limit: 300
nqn=nqn.2024-01.test.nsheal:idle

subsystem $nqn 1 2
for nsid in 1 2 3; do map $nqn $nsid; done
connect $nqn 1 2
quiet 1
conf <<END
[subsystem idle]
nqn = $nqn
namespace = nsid=1-2
namespace = uuid=$(uuid_of 3)
END
fast_timer 1s
trace_on
timer_on
check "20 runs of the timer" wait_for 120 at_least 20 service_runs
systemctl stop nvme-nsheal.timer
check "the last run ends" wait_for 30 service_is_idle
check "no admin command in all that time" nothing admin_commands
check "no line in the journal" nothing journal
check_not "no run failed" service_failed
check "status has nothing to complain about" status_exits 0
