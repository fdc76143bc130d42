# SPDX-License-Identifier: Apache-2.0
"""Makes an installed SGLang serve on a CPU with NIXL over host memory: sglang_on_cpu.py STUBS

SGLang needs two things here. A module sgl_kernel: without AMX the scheduler computes in plain torch, but it imports the names. And
NIXL has to be told that the KV cache lies in DRAM: the connector says VRAM wherever it names memory.
"""

import importlib.util
import re
import sys
from pathlib import Path

KERNELS = '''"""Stands in for SGLang's CUDA kernels."""

__version__ = "0.4.10"


def assign_req_to_token_pool_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    taken = 0
    rows = zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist())
    for row, start, end in rows:
        count = end - start
        req_to_token[row, start:end] = out_cache_loc[taken : taken + count].to(req_to_token.dtype)
        taken += count


def __getattr__(name):
    if not name.endswith("_cpu"):
        raise AttributeError(name)

    def absent(*_args, **_kwargs):
        raise NotImplementedError(f"sgl_kernel.{name}")

    return absent
'''

AGENT_LINE = re.compile(r"        self\.agent = nixl_agent\(str\(uuid\.uuid4\(\)\)(, agent_config)?\)\n")
DEVICE_LINE = "            torch.get_device_module(get_device().device).set_device(self.kv_args.gpu_id)\n"
MARK = "# The KV cache lies in host memory."
IN_DRAM = f'''        {MARK}
        def _dram(value):
            return "DRAM" if isinstance(value, str) and value == "VRAM" else value

        def _named_dram(call):
            return lambda *a, **k: call(*map(_dram, a), **{{name: _dram(value) for name, value in k.items()}})

        for _name in ("register_memory", "get_reg_descs", "get_xfer_descs", "prep_xfer_dlist"):
            if hasattr(self.agent, _name):
                setattr(self.agent, _name, _named_dram(getattr(self.agent, _name)))
'''


def main(stubs):
    stub = Path(stubs) / "sgl_kernel"
    stub.mkdir(parents=True, exist_ok=True)
    (stub / "__init__.py").write_text(KERNELS)

    package = Path(importlib.util.find_spec("sglang").origin).parent
    connector = package / "srt" / "disaggregation" / "nixl" / "conn.py"
    text = connector.read_text()
    if MARK in text:
        return
    made = AGENT_LINE.search(text)
    if not made:
        sys.exit(f"{connector} makes its NIXL agent in another way: this release is not known here")
    text = text.replace(made[0], made[0] + IN_DRAM).replace(DEVICE_LINE, "")
    connector.write_text(text)


main(*sys.argv[1:])
