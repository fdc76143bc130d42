// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"

namespace baton::prompt {

// A request's tools as its template sees them: vLLM's reading of them, in which `description` and
// `parameters` are always there (null where they were not given), `strict` and `defer_loading` only
// where they were, and nothing else. Differs in SGLang, which puts `description` first and always
// has `strict`.
Result<jinja::Value> tools_of(const jinja::Value& tools);

}  // namespace baton::prompt
