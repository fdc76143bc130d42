// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"
#include "model/worker.h"

#include <optional>
#include <string>

namespace baton::engine {

// Why another worker could not continue the streamed answer to this request where its own fails
// midway; nullopt: it could. Known before anything is sent, and only then are token ids asked for.
// An answer that is not streamed is simply asked for again.
std::optional<std::string> why_not_continuable(model::Engine engine, const ClientCall& call);

}  // namespace baton::engine
