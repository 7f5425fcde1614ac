# generate: what is attached becomes a configuration that is taken and that nothing is missing of; and it watches.
nqn=nqn.2024-01.test.nsheal:generate

subsystem $nqn 1 2
map $nqn 1
map $nqn 2 nguid="$(nguid_of 2)"
connect $nqn 1 2
mask nvme-nsheal.path nvme-nsheal.timer $UNIT
check "it is written" sh -c "nvme-nsheal generate >$WORK/generated"
check "a line for each namespace" equal 2 grep -c '^namespace = ' "$WORK/generated"
check "by UUID" grep -q "^namespace = uuid=$(uuid_of 1) " "$WORK/generated"
conf <"$WORK/generated"
check "it is a configuration" nvme-nsheal check-config
check "of which everything is there" status_exits 0
deaf $nqn
unmap $nqn 2
map $nqn 2 uuid="$(uuid_of 22)"
for ctrl in $(ctrls_of $nqn); do echo 1 >"/sys/class/nvme/$ctrl/rescan_controller"; done
check "and by which a loss is seen" wait_for 30 status_exits 1
check "a subsystem that is not there" exits 1 nvme-nsheal generate nqn.other
