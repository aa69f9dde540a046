# The scripts that compare anfora with ONNX source this file, from the root of the repository.
#
# Sets `python`, an interpreter with onnx, onnxruntime and numpy, and `anfora`, the program, built
# from the current sources. The first run installs the packages into a virtual environment under
# target/. The variables ONNX_PYTHON and ANFORA select another interpreter and another program.

# Keeps the compiled files of Python out of the sources.
export PYTHONPYCACHEPREFIX=$PWD/target/pycache

if [ -z "${ONNX_PYTHON:-}" ]; then
    python=$(scripts/python-env onnx-env 'numpy, onnx, onnxruntime' onnx onnxruntime)
elif python=$ONNX_PYTHON && ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    echo "$python cannot import numpy, onnx and onnxruntime" >&2
    exit 1
fi

# Asks cargo, since the target directory may be anywhere.
anfora=${ANFORA:-$(cargo build --release --message-format=json | "$python" -c '
import json, sys
messages = (json.loads(line) for line in sys.stdin)
print([m["executable"] for m in messages if m.get("executable")][-1])
')}
