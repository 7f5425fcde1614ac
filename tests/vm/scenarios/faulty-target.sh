# The target that misbehaves does what tests/vm/FAULTY.md says of it, as nvme-cli and the kernel see it.
# limit: 600
. /run/vm/guest/lib-faulty.sh

nqn=nqn.2024-01.test.nsheal:faulty
target() { faulty $nqn "$@"; }
listed() { nvme list-ns "/dev/$1" | sed -nE 's/.*:0*(0x)?([0-9a-f]+)$/\2/p' | xargs; }
uuid_through() { nvme ns-descs "/dev/$1" -n "$2" | sed -nE 's/^uuid *: *([0-9a-f-]+)$/\1/p'; }
ana_through() { cat /sys/class/nvme/"$1"/nvme*c*n*/ana_state 2>/dev/null | sort | uniq -c | xargs; }
identify() { nvme admin-passthru "/dev/$1" --opcode=6 --cdw10="$2" --namespace-id="${3:-0}" --data-len=4096 --read --timeout=2000; }
notices_of() { nvme get-feature "/dev/$1" -f 0x0b | grep -o '0x0*900$' | sed 's/0x0*/0x/'; }
at_least_seconds() {    # SECONDS COMMAND...
    local wanted=$1 start
    shift
    start=$(now)
    "$@" && FIGURE=$(since "$start") && elapsed "$start" "$wanted"
}

faulty_target $nqn 1 2
target map 1 && target map 2 && target map 3 nguid="$(nguid_of 3)"
faulty_connect $nqn 1 2
one=$(faulty_ctrl $nqn 1)
two=$(faulty_ctrl $nqn 2)

# --- an ordinary target
check "two controllers in one subsystem" equal "$one $two" eval 'ctrls_of $nqn | sort | xargs'
check "a device with two paths" equal 2 paths_of "$(uuid_of 1)"
check "id-ctrl" eval 'nvme id-ctrl /dev/$one | grep -Eq "^oaes *: 0x900$"'
check "list-ns" equal "1 2 3" listed "$one"
check "ns-descs" equal "$(uuid_of 2)" uuid_through "$one" 2
check "the kernel set the notices" equal 0x900 notices_of "$one"
node=/dev/$(device_of "uuid.$(uuid_of 1)")
head -c 1M /dev/urandom >"$WORK/data"
dd if="$WORK/data" of="$node" bs=256k seek=3 oflag=direct status=none
dd if="$node" of="$WORK/back" bs=256k skip=3 count=4 iflag=direct status=none
check "what was written is read" cmp "$WORK/data" "$WORK/back"
check "by I/O commands" at_least 8 target count write
nvme reset "/dev/$one"
check "after a reset all is back" wait_for 60 equal 3 paths_through "$one"
target drop on=2
check "the kernel reconnects" wait_for 60 equal 2 target count connect on=2 qid=0
check "and scans" wait_for 60 eval '[ "$(state_of_ctrl $two)" = live ] && [ "$(paths_through $two)" = 3 ]'
quiet 1

# --- commands that fail
target fault identify cns=2 fail=0x6 once on=1
check_not "list-ns fails once" nvme list-ns "/dev/$one"
check "and then works" equal "1 2 3" listed "$one"
target fault identify cns=3 nsid=2 fail=0x4006
check_not "always, for one namespace" nvme ns-descs "/dev/$one" -n 2
check_not "again, and through the other controller" nvme ns-descs "/dev/$two" -n 2
check "another namespace is not concerned" equal "$(uuid_of 1)" uuid_through "$one" 1
target clear
target fault identify cns=2 late=2 once
check "an answer comes late" at_least_seconds 2 listed "$one"
target forget
target fault identify cns=2 never on=1
check_not "an answer never comes" identify "$one" 2
target clear
check "the kernel made a new connection for it" wait_for 120 at_least 1 target count connect on=1
check "and is live again" wait_for 60 all_ctrls_are live $nqn
check "the other controller was not concerned" equal 0 target count connect on=2
wait_for 60 faulty_paths_complete $nqn 1 2
quiet 1

# --- lists and identifiers
for fault in "zeros:" "short=1:1" "without=2:1 3" "with=9:1 2 3 9" "unsorted:3 2 1"; do
    target fault identify cns=2 "${fault%%:*}" once
    check "a list: ${fault%%:*}" equal "${fault#*:}" listed "$one"
done
target fault identify cns=2 zeros once on=1
kernel_rescan "$one"
check "after an empty list its paths are gone" equal 0 paths_through "$one"
check "not those of the other controller" equal 3 paths_through "$two"
kernel_rescan "$one"
check "the next scan brings them back" wait_for 30 equal 3 paths_through "$one"
target change 2 uuid="$(uuid_of 22)" on=2 silent
check "identifiers differ" equal "$(uuid_of 22)" uuid_through "$two" 2
check "through one controller only" equal "$(uuid_of 2)" uuid_through "$one" 2
kernel_rescan "$two"
check "the kernel takes that path away" wait_for 30 equal 1 paths_of "$(uuid_of 2)"
target change 2 uuid="$(uuid_of 2)" on=2 silent
kernel_rescan "$two"
check "and brings it back" wait_for 30 equal 2 paths_of "$(uuid_of 2)"
target map 4 uuid=0
check "without any identifier" wait_for 30 eval 'grep -qs "^nvme\." /sys/class/block/nvme*/wwid'
target map 5 uuid="$(uuid_of 1)"
kernel_rescan "$one"
check "the same identifiers twice: ns-descs" equal "$(uuid_of 1)" uuid_through "$one" 5
check "the kernel refuses the second" equal 4 paths_through "$one"
target unmap 4
target unmap 5
quiet 1

# --- notices
target map 6
check "a notice brings a device" wait_for 30 device "$(uuid_of 6)"
target unmap 6
check "and takes it away" wait_for 30 no_device "$(uuid_of 6)"
quiet 1
target map 7 silent
check "a silent one stays hidden" always 3 no_device "$(uuid_of 7)"
kernel_rescan "$one"
check "until a rescan" wait_for 30 device "$(uuid_of 7)"
target forget
target notices off
target map 8
check "notices are dropped" always 3 no_device "$(uuid_of 8)"
check "which feature 0Bh does not show" equal 0x900 notices_of "$one"
check "the trace does" equal 2 target count notice outcome=dropped
target notices on
target mask ns
target map 9
check "masked" always 3 no_device "$(uuid_of 9)"
check "by what was not read" equal 2 target count notice outcome=masked
nvme get-log "/dev/$one" --log-id=4 --log-len=4096 --rae >/dev/null
target map 10
check "read with RAE: still masked" always 3 no_device "$(uuid_of 10)"
nvme get-log "/dev/$one" --log-id=4 --log-len=4096 >/dev/null
target map 11
check "read without: the next one is heard" wait_for 30 device "$(uuid_of 11)"
check "and the missed ones come with it" wait_for 30 device "$(uuid_of 9)"
kernel_rescan "$two"
wait_for 30 faulty_paths_complete $nqn 1 2
target forget
target notify ns
check "a rescan alone does not unmask" equal 1 target count notice outcome=masked on=2
nvme get-log "/dev/$two" --log-id=4 --log-len=4096 >/dev/null
quiet 1

# --- ANA
target ana 2 inaccessible
target map 12 group=2
check "inaccessible: paths" wait_for 30 equal "1 inaccessible 8 optimized" ana_through "$one"
check "and no disk" no_device "$(uuid_of 12)"
target ana 2 optimized silent
check "a silent change is not seen" always 3 no_device "$(uuid_of 12)"
target ana 2 optimized
check "a notice is" wait_for 30 device "$(uuid_of 12)"
target ana 1 non-optimized on=2
check "one controller's own state" wait_for 30 equal "8 non-optimized 1 optimized" ana_through "$two"
check "not the other's" equal "9 optimized" ana_through "$one"

# --- the product with it
conf <<END
[subsystem faulty]
nqn = $nqn
namespace = uuid=$(uuid_of 13)
grace = 1s
END
target map 13 silent
target forget
check "without help it stays hidden" always 3 no_device "$(uuid_of 13)"
check "and nothing is asked" equal 0 target count identify
run_service
check "the product heals it" wait_for 60 device "$(uuid_of 13)"
check "by asking each controller for its list" at_least 2 target count identify cns=2
disconnect $nqn
check "all controllers are gone" wait_for 30 equal '' target controllers
