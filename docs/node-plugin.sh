#!/bin/sh
# A node plugin's attach and detach with nvme-nsheal, as its authors could write it: docs/csi.md explains it.
#
#   node-plugin.sh attach NQN UUID    prints the device, or fails within 60 s and says why
#   node-plugin.sh detach NQN UUID    from now on nobody looks for it
set -eu

verb=$1 nqn=$2 uuid=$3
dropin=/run/nvme-nsheal.conf.d/csi-$uuid.conf

case $verb in
attach)
	# From now on it is expected, also when this process dies: the timer goes on where wait ends.
	mkdir -p "${dropin%/*}"
	cat >"$dropin.new" <<-END
		[subsystem $uuid]
		nqn = $nqn
		namespace = uuid=$uuid
	END
	chmod 644 "$dropin.new"
	mv "$dropin.new" "$dropin" # renamed: nobody ever reads half of it
	exec nvme-nsheal wait --nqn "$nqn" --uuid "$uuid" --timeout 60s
	;;
detach)
	# Before the storage unmaps it: what is not expected is not healed.
	rm -f "$dropin"
	;;
esac
