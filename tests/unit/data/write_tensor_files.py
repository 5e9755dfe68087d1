"""Writes files of the numbers 0, 0.5, 1, -2, 1.5, 4 in two rows with NumPy, ml_dtypes and safetensors, one of each format,
to the folder that is its argument. Ends with 77 if Python does not have all three."""

import pathlib
import sys

try:
    import ml_dtypes
    import numpy
    import safetensors.numpy
except ImportError as missing:
    print(missing)
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])
numbers = numpy.array([[0, 0.5, 1], [-2, 1.5, 4]])
ours = {"bf16": ml_dtypes.bfloat16, "fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2,
        "fp16": numpy.float16, "fp32": numpy.float32, "fp64": numpy.float64}
for name, dtype in ours.items():
    numpy.save(folder / f"{name}.npy", numbers.astype(dtype))
    numpy.save(folder / f"{name}_columns.npy", numpy.asfortranarray(numbers.astype(dtype)))
numpy.save(folder / "fp4_e2m1.npy", numbers.astype(ml_dtypes.float4_e2m1fn))
numpy.save(folder / "int8.npy", (2 * numbers).astype(numpy.int8))
numpy.save(folder / "bool.npy", numbers > 0.75)
numpy.save(folder / "big_endian.npy", numbers.astype(">f4"))
numpy.save(folder / "objects.npy", numbers.astype(object))
numpy.savez(folder / "several.npz", a=numbers)
tensors = {name: numbers.astype(dtype) for name, dtype in ours.items()}
safetensors.numpy.save_file(tensors | {"int64": (2 * numbers).astype(numpy.int64), "none": numbers[:0]},
                            folder / "all.safetensors", {"made by": "safetensors"})
