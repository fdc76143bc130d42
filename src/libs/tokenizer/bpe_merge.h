// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/merge_table.h"
#include "libs/tokenizer/model.h"

namespace baton::tokenizer {

// Merges neighbours in `workspace.symbols` until none is left to merge: the lowest rank first, and
// of equal ranks the leftmost. `workspace.merges[i]` has to say what symbols i and i + 1 become.
// Uses the other parts of the workspace.
void merge_symbols(const MergeTable& table, Workspace& workspace);

}  // namespace baton::tokenizer
