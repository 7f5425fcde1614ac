# One NQN connected under two host identities, and one UUID in two subsystems: neither is taken for the other.
# limit: 400
. /run/vm/guest/lib-faulty.sh

nqn=nqn.2024-01.test.nsheal:identities
ours=nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-0000000000aa
theirs=nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-0000000000bb
attach_as() {       # HOSTNQN PORT
    nvme connect -t tcp -n $nqn -a "127.0.0.$2" -s $((4420 + $2)) -k 60 -c 1 -l 600 -q "$1" -I "${1##*uuid:}" >/dev/null
}
ctrl_of_host() { dirname "$(grep -lx "$1" /sys/class/nvme/nvme*/hostnqn)" | xargs basename; }
rescans_of_both() { echo "$(scans "$(ctrl_of_host $theirs)") $(scans "$(ctrl_of_host $ours)")"; }

subsystem $nqn 1 2
map $nqn 1
attach_as $theirs 1
attach_as $ours 2
check "two identities, one subsystem" wait_for 60 all_mapped_have_paths $nqn
conf <<END
[subsystem ours]
nqn = $nqn
hostnqn = $ours
namespace = nsid=1-2
grace = 1s
END
nvme set-feature "/dev/$(ctrl_of_host $ours)" -f 0x0b --value=0 >/dev/null
map $nqn 2
check "the other identity hears of the next" wait_for 30 device "$(uuid_of 2)"
quiet 1
trace_on
check "its path is not ours" status_exits 1
check "heal" nvme-nsheal heal
check "brings ours" wait_for 10 equal 2 paths_of "$(uuid_of 2)"
check "by our controller alone" equal "0 1" rescans_of_both
check "now all is there" status_exits 0
conf <<END
[subsystem nobody]
nqn = $nqn
hostnqn = $ours-not
namespace = nsid=1
END
check "an identity that is not connected: disconnected" status_says 'NSID 1|nsid=1' disconnected
check "heal does nothing" nvme-nsheal heal --now
check "to anybody" equal "0 1" rescans_of_both

# the kernel lets only one of two namespaces of the same identity in: the other subsystem's does not count as ours
twin=nqn.2024-01.test.nsheal:twin
faulty_target $twin 3
faulty $twin map 7
faulty_connect $twin 3
conf <<END
[subsystem twin]
nqn = $twin
namespace = uuid=$(uuid_of 1)
grace = 1s
settle = 2s
max-attempts = 1
END
faulty $twin map 1 silent
check "the same UUID elsewhere is not ours" probe_says "$(uuid_of 1)" hidden
check "heal tries" nvme-nsheal heal
check "it does not come: gave up" status_says "$(uuid_of 1)" gave-up
check "the other subsystem's is still there" equal 2 paths_of "$(uuid_of 1)"
check "and was not touched" equal "0 1" rescans_of_both
