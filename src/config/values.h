// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/network.h"
#include "model/worker.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace baton::config {

// A value read from its text, or the fault in the text and the remedy.
template <class T>
using Parsed = std::expected<T, std::string>;

// 500ms, 2s, 1m, 1h: above zero, at most a day.
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text);
// The same, and zero: 0s.
Parsed<std::chrono::milliseconds> parse_duration_or_zero(std::string_view text);
// 4096, 64KiB, 8MiB, 1GiB: above zero, at most 1 TiB.
Parsed<std::size_t> parse_size(std::string_view text);
// A whole number from `least` to `most`.
Parsed<std::size_t> parse_number(std::string_view text, std::size_t least, std::size_t most);
template <std::size_t kLeast, std::size_t kMost>
Parsed<std::size_t> number_within(std::string_view text) {
  return parse_number(text, kLeast, kMost);
}
Parsed<bool> parse_boolean(std::string_view text);
Parsed<std::uint16_t> parse_port(std::string_view text);
// host:port to listen on; port 0 asks for any free one.
Parsed<model::Endpoint> parse_listen_address(std::string_view text);
// http://host:port of an engine server.
Parsed<model::Endpoint> parse_worker_url(std::string_view text);
struct ServerUrl {
  model::Endpoint endpoint;
  bool tls = false;
};
// http://host:port or https://host:port.
Parsed<ServerUrl> parse_server_url(std::string_view text);
// Text that stands in logs, metrics and answers: not empty, no control characters, no blanks at its
// ends.
Parsed<std::string> parse_name(std::string_view text);
// A name that also stands in headers: visible ASCII without blanks, at most 256 bytes.
Parsed<std::string> parse_worker_id(std::string_view text);
// host:port of something to connect to.
Parsed<model::Endpoint> parse_peer_address(std::string_view text);
// An address or address/bits.
Parsed<model::Network> parse_network(std::string_view text);
// A number from 0 to `most`.
Parsed<double> parse_fraction(std::string_view text, double most);
// A number above zero, at most 100.
Parsed<double> parse_weight(std::string_view text);
// tcp://host:port or ipc://path, as ZeroMQ has them; * for host where it is bound.
Parsed<std::string> parse_zmq_endpoint(std::string_view text);
// A path of a file.
Parsed<std::string> parse_path(std::string_view text);

// `text` in quotes, cut short and without control characters, to show it in a message.
std::string shown(std::string_view text);
// The candidate nearest to a mistyped `text`, or the only one that begins with it; empty where none
// is near.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);
// Says that `text` is none of `names`, and which of them may be meant.
std::string unknown_choice(std::string_view text, std::span<const std::string_view> names);

// One of `names`, as `parse` reads them.
template <class Value>
Parsed<Value> parse_choice(std::string_view text, std::optional<Value> (*parse)(std::string_view),
                           std::span<const std::string_view> names) {
  if (const auto value = parse(text)) return *value;
  return std::unexpected(unknown_choice(text, names));
}

}  // namespace baton::config
