// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/index/snapshot.h"

#include <span>
#include <string>
#include <vector>

namespace baton::kvcache {

// Reads a saved file; nothing if there is none. An error says why it cannot be used.
Result<std::vector<HolderSnapshot>> read_snapshot_file(const std::string& path);

// A reader finds the old file or the new one, also after a crash; never a part of one. Returns its
// size in bytes.
Result<std::size_t> write_snapshot_file(const std::string& path,
                                        std::span<const HolderSnapshot> holders);

}  // namespace baton::kvcache
