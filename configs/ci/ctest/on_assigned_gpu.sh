#!/bin/sh
# Runs a command on the GPU that CTest has assigned to the test: CTEST_RESOURCE_GROUP_0_GPUS is "id:1,slots:1".
if [ -n "${CTEST_RESOURCE_GROUP_0_GPUS:-}" ]; then
  id=${CTEST_RESOURCE_GROUP_0_GPUS#id:}
  export TE_NUMCHECK_DEVICE="cuda:${id%%,*}"
fi
exec "$@"
