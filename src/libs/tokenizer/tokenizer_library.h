// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

// All that a user of the library needs: tokenizers, the cache of what they encoded, errors, and the
// text of single tokens.
#include "libs/tokenizer/error.h"              // IWYU pragma: export
#include "libs/tokenizer/file_reader.h"        // IWYU pragma: export
#include "libs/tokenizer/segment_cache.h"      // IWYU pragma: export
#include "libs/tokenizer/token.h"              // IWYU pragma: export
#include "libs/tokenizer/token_pieces.h"       // IWYU pragma: export
#include "libs/tokenizer/tokenizer.h"          // IWYU pragma: export
#include "libs/tokenizer/tokenizer_release.h"  // IWYU pragma: export
