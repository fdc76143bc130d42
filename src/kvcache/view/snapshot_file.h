// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/index/snapshot.h"

#include <span>
#include <string>
#include <vector>

namespace baton::kvcache {

// What was saved there; nothing where there is no such file. An error says why it cannot be used.
Result<std::vector<HolderSnapshot>> read_snapshot_file(const std::string& path);

// Whoever reads finds the old file or the new one, also after a crash; never a part of one. How many
// bytes it has.
Result<std::size_t> write_snapshot_file(const std::string& path,
                                        std::span<const HolderSnapshot> holders);

}  // namespace baton::kvcache
