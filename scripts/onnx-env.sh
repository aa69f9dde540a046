# The scripts that compare anfora with ONNX source this file, from the root of the repository.
#
# Sets `python`, an interpreter with onnx, onnxruntime and numpy, and `anfora`, the program, built
# from the current sources (scripts/program.sh). The first run installs the packages into a virtual
# environment under target/; `optimizers=true` adds the optimizers that anfora is compared with. The
# variable ONNX_PYTHON selects another interpreter.

# Keeps the compiled files of Python out of the sources.
export PYTHONPYCACHEPREFIX=$PWD/target/pycache

if [ -z "${ONNX_PYTHON:-}" ]; then
    # A table is checked against the schemas of these versions; figures depend on them too.
    if ${optimizers:-false}; then
        python=$(scripts/python-env tools-env 'numpy, onnx, onnxconverter_common, onnxruntime, onnxscript, onnxsim, onnxslim' \
            onnx==1.23.2 onnxconverter-common==1.16.0 onnxruntime==1.31.1 onnxscript==0.7.2 onnxsim==0.8.1 onnxslim==0.1.98)
    else
        python=$(scripts/python-env onnx-env 'numpy, onnx, onnxruntime' onnx==1.23.2 onnxruntime==1.32.0)
    fi
elif python=$ONNX_PYTHON && ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    echo "$python cannot import numpy, onnx and onnxruntime" >&2
    exit 1
fi

source scripts/program.sh
