// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/load.h"
#include "model/worker.h"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace baton::config {

inline constexpr std::size_t kMaxAnnouncementBytes = 64 * 1024;

// One worker as a document of its own: JSON or YAML with the worker keys of the configuration, and
// `model` and `draining`. Reports every problem, not only the first; `origin` is for messages only.
// Never throws, whatever the bytes.
std::expected<model::Announcement, std::vector<Problem>> parse_announcement(
    std::string_view text, std::string_view origin);

// An announcement with a JSON merge patch (RFC 7396) laid over it: null takes a key away. Reports
// problems as parse_announcement does, and never throws either.
std::expected<model::Announcement, std::vector<Problem>> amend_announcement(
    const model::Announcement& before, std::string_view patch, std::string_view origin);

// The same keys as JSON; parse_announcement reads it back unchanged.
std::string to_json(const model::Announcement& announcement);

}  // namespace baton::config
