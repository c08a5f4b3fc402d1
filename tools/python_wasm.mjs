#!/usr/bin/env node
// The newest Python there is, as WebAssembly, in the place of `python`: with 32-bit words, on no real machine.
// `make newest` installs it and has it make kernels again.
//
// tools/python_wasm.mjs PROGRAM.py ARGUMENTS...

import { readdirSync } from "node:fs";

const OWN = new Set(["dev", "lib", "proc", "sys"]); // folders that are not this machine's
const RUN = `
import runpy, sys
words = sys.argv = sys.argv[1:]
code = 0
try:
    runpy.run_path(words[0], run_name="__main__")
except SystemExit as left:  # which this Python takes for an error
    code = left.code or 0
`;

const pyodide = new URL("../build/newest/node_modules/pyodide/pyodide.mjs", import.meta.url);
const { loadPyodide } = await import(pyodide);

const python = await loadPyodide({
  args: ["-c", RUN, ...process.argv.slice(2)],
  env: { ...process.env, HOME: "/home", PYTHONDONTWRITEBYTECODE: "1" },
  fsInit: (files) => {
    for (const name of readdirSync("/").filter((each) => !OWN.has(each))) {
      files.mkdirTree(`/${name}`);
      files.mount(files.filesystems.NODEFS, { root: `/${name}` }, `/${name}`);
    }
    files.chdir(process.cwd());
  },
});
const broken = python._module._run_main();
process.exitCode = broken || Number(python.runPython("import __main__; __main__.code"));
