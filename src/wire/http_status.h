// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

namespace baton::wire {

// The statuses that callers tell apart by name.
inline constexpr int kOk = 200;
inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;

}  // namespace baton::wire
