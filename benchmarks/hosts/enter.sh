#!/bin/sh
# what mpiexec starts instead of ssh: enter.sh 10.0.0.N COMMAND... runs a command on the host that process $HOLDER_N holds
eval "pid=\$HOLDER_${1##*.}"
shift
exec setpriv --pdeathsig KILL nsenter --target="$pid" --net --uts sh -c "exec $*"
