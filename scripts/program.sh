# The scripts that run the program source this file, from the root of the repository, after they
# have set `python`. Sets `anfora`, the program, built from the current sources. The variable ANFORA
# selects another program; `profile=dist` builds it as it is published.

# Asks cargo, since the target directory may be anywhere.
anfora=${ANFORA:-$(cargo build --profile "${profile:-release}" --message-format=json | "$python" -c '
import json, sys
messages = (json.loads(line) for line in sys.stdin)
print([m["executable"] for m in messages if m.get("executable")][-1])
')}
