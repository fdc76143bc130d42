# SPDX-License-Identifier: Apache-2.0
"""Starts a vLLM or SGLang server whose processes are forks of one another.

usage: start_forked.py vllm serve ARGUMENT... | sglang ARGUMENT...

On a CPU both engines spawn their processes, so each of three imports torch and the engine again: most of a start. On a GPU vLLM
forks them. Nothing else of the engines is changed.
"""
import importlib
import multiprocessing
import os
import runpy
import sys


def import_early(*names: str) -> None:
    """Imports what the forked processes need. A release that lacks a module imports what it has instead of it later."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            pass


def fork_vllm() -> None:
    from vllm.platforms.cpu import CpuPlatform

    spawning = CpuPlatform.check_and_update_config.__func__

    def forking(cls, config) -> None:
        spawning(cls, config)
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "fork"

    CpuPlatform.check_and_update_config = classmethod(forking)
    import_early("vllm.v1.engine.core", "vllm.v1.executor.multiproc_executor", "vllm.v1.worker.cpu_worker",
                 "vllm.model_executor.models.qwen2")


def fork_sglang() -> None:
    multiprocessing.set_start_method("fork")
    multiprocessing.set_start_method = lambda *_, **__: None
    import_early("sglang.srt.managers.scheduler", "sglang.srt.managers.detokenizer_manager", "sglang.srt.models.qwen2")


# Nothing of this may run again in a process that is spawned all the same.
if __name__ == "__main__":
    engine, *arguments = sys.argv[1:]
    if engine == "vllm":
        fork_vllm()
        from vllm.entrypoints.cli.main import main

        sys.argv = ["vllm", *arguments]
        main()
    else:
        fork_sglang()
        sys.argv = ["sglang", *arguments]
        runpy.run_module("sglang.launch_server", run_name="__main__")
