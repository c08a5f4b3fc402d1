"""Compiles LLVM IR with llvmlite, in a process of its own: LLVM ends with abort() on what it cannot do.

    python -P llvm_child.py TRIPLE CPU LEVEL < module.ll > object.o

LEVEL is Os, O2 or O3, or llc: the code generator at -O2 without the passes before it.  `programs.py` runs it.
"""

from __future__ import annotations

import importlib
import sys


def main(triple: str, cpu: str, level: str) -> None:
    """IR on stdin, an object file on stdout; one line on stderr and exit code 1 for what LLVM refuses."""
    try:
        llvm = importlib.import_module("llvmlite.binding")
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        speed = int(level[1:]) if level[1:].isdigit() else 2
        machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=speed)
        module = llvm.parse_assembly(sys.stdin.read())
        module.triple, module.data_layout = triple, str(machine.target_data)
        module.verify()
        if level == "Os":
            for function in module.functions:
                function.add_function_attribute("optsize")
        if level != "llc":
            builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=speed))
            builder.getModulePassManager().run(module, builder)
        sys.stdout.buffer.write(machine.emit_object(module))
    except Exception as error:
        first = str(error).strip().splitlines()
        sys.exit(first[0] if first else type(error).__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])
