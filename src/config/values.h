// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace baton::config {

// A value read from its text, or what is wrong with the text and what to write instead.
template <class T>
using Parsed = std::expected<T, std::string>;

// 500ms, 2s, 1m, 1h: above zero, at most a day.
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text);
// 4096, 64KiB, 8MiB, 1GiB: above zero, at most 1 TiB.
Parsed<std::size_t> parse_size(std::string_view text);
// A whole number from `least` to `most`.
Parsed<std::size_t> parse_number(std::string_view text, std::size_t least, std::size_t most);
Parsed<bool> parse_boolean(std::string_view text);
Parsed<std::uint16_t> parse_port(std::string_view text);
// host:port to listen on; port 0 asks for any free one.
Parsed<model::Endpoint> parse_listen_address(std::string_view text);
// http://host:port of an engine server.
Parsed<model::Endpoint> parse_worker_url(std::string_view text);
// Text that stands in logs, metrics and answers: not empty, no control characters, no blanks at its
// ends.
Parsed<std::string> parse_name(std::string_view text);
// A path of a file.
Parsed<std::string> parse_path(std::string_view text);

// `text` in quotes, cut short and without control characters, to show it in a message.
std::string shown(std::string_view text);
// The candidate nearest to a mistyped `text`; empty where none is near.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace baton::config
