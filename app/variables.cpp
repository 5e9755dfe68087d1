#include "variables.hpp"

#include <array>

namespace numcheck::app {
namespace {

constexpr std::array kVariables{
    VariableInfo{"TE_NUMCHECK_DEVICE", "as --device"},
    VariableInfo{"TE_NUMCHECK_JOBS", "as --jobs"},
    VariableInfo{"TE_NUMCHECK_COLOR", "as --color"},
    VariableInfo{"TE_NUMCHECK_LIB_DIR", "as --lib-dir"},
    VariableInfo{"TE_NUMCHECK_TE_LIB", "as --te-lib"},
    VariableInfo{"NO_COLOR, CLICOLOR_FORCE, TERM",
                 "colour under --color auto: never if NO_COLOR is set or TERM is dumb, and also in files if "
                 "CLICOLOR_FORCE is set"},
    VariableInfo{"COLUMNS", "width of the console view, also in files"},
    VariableInfo{"LC_ALL, LC_CTYPE, LANG", "whether output may have characters beyond ASCII: only if they name UTF-8"},
    VariableInfo{"LD_LIBRARY_PATH", "folders in which cuBLASLt and cuDNN are looked for first"},
    VariableInfo{"CUDA_HOME, CUDA_PATH", "CUDA toolkits, whose lib64 and lib folders are searched next"},
    VariableInfo{"VIRTUAL_ENV, CONDA_PREFIX, PYTHONPATH",
                 "Python environments: NVIDIA's wheels and TransformerEngine are found in them"},
    VariableInfo{"PATH", "the first python3 in it names another Python environment"},
    VariableInfo{"HOME", "the user's own Python packages, in .local"},
    VariableInfo{
        "NVTE_CUDA_INCLUDE_DIR",
        "headers with which TransformerEngine compiles kernels; if neither it nor CUDA_HOME is set, te-numcheck "
        "sets CUDA_HOME to a toolkit that it finds"},
    VariableInfo{"GITHUB_ACTIONS", "true: mistakes and failures are also printed as annotations"},
    VariableInfo{"GITHUB_STEP_SUMMARY", "a file of this name is appended to by --markdown instead of being replaced"},
    VariableInfo{"GTEST_SHARD_INDEX, GTEST_TOTAL_SHARDS, GTEST_SHARD_STATUS_FILE",
                 "GoogleTest's protocol; read only with --shard auto, as are those below"},
    VariableInfo{"SLURM_ARRAY_TASK_ID, SLURM_ARRAY_TASK_COUNT, SLURM_ARRAY_TASK_MIN, SLURM_ARRAY_TASK_STEP",
                 "the task of a Slurm array"},
    VariableInfo{"SLURM_PROCID, SLURM_NTASKS", "the task of a Slurm step"},
    VariableInfo{"OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMI_RANK, PMI_SIZE", "the rank of an MPI process"},
    VariableInfo{"JOB_COMPLETION_INDEX", "the index of a Kubernetes job; --shard auto/N names the total"},
    VariableInfo{"CI_NODE_INDEX, CI_NODE_TOTAL", "the job of a GitLab pipeline with parallel"},
};

}  // namespace

std::span<const VariableInfo> variables() noexcept {
  return kVariables;
}

}  // namespace numcheck::app
