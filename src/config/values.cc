// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace baton::config {
namespace {

template <class... Args>
std::unexpected<std::string> wrong(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(fmt::format(format, std::forward<Args>(args)...));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || !is_digit(digits.front()) || stop != end || error != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array kTimeUnits{Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000},
                                Unit{"h", 3'600'000}};
constexpr std::array kSizeUnits{Unit{"", 1}, Unit{"KiB", 1ULL << 10}, Unit{"MiB", 1ULL << 20},
                                Unit{"GiB", 1ULL << 30}};

// A whole number and a unit. Too big for 64 bits: the largest value, which no limit admits.
std::optional<std::uint64_t> quantity(std::string_view text, std::span<const Unit> units) {
  const auto digits =
      static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
  const auto unit = std::ranges::find(units, text.substr(digits), &Unit::name);
  if (digits == 0 || unit == units.end()) return std::nullopt;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t number = whole_number(text.substr(0, digits)).value_or(kMost);
  return number > kMost / unit->factor ? kMost : number * unit->factor;
}

// An IPv6 address without its brackets, in its canonical spelling.
std::optional<std::string> canonical_ipv6(const std::string& text) {
  in6_addr address{};
  std::array<char, INET6_ADDRSTRLEN> spelled{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::nullopt;
  if (inet_ntop(AF_INET6, &address, spelled.data(), spelled.size()) == nullptr) return std::nullopt;
  return spelled.data();
}

Parsed<std::string> parse_host(std::string_view text) {
  if (text.empty()) return wrong("has no host before the port");
  std::string host(text);
  std::ranges::transform(host, host.begin(), lower);
  if (std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; })) {
    in_addr address{};
    if (inet_pton(AF_INET, host.c_str(), &address) != 1) {
      return wrong("{} is not an IPv4 address", shown(text));
    }
    return host;
  }
  const bool is_name =
      host.size() <= 253 && std::ranges::all_of(host, [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_';
      });
  if (!is_name) return wrong("{} is not a host name or an address", shown(text));
  return host;
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;
  bool brackets = false;
};

Parsed<HostAndPort> split_host(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == text.npos) return wrong("has no ']' after the IPv6 address");
    const auto rest = text.substr(end + 1);
    if (!rest.starts_with(':')) return wrong("has no port; write [address]:port");
    return HostAndPort{text.substr(1, end - 1), rest.substr(1), true};
  }
  const auto colon = text.find(':');
  if (colon == text.npos) return wrong("has no port; write host:port");
  if (text.find(':', colon + 1) != text.npos) {
    return wrong("has more than one ':'; write an IPv6 address in brackets, [::1]:port");
  }
  return HostAndPort{text.substr(0, colon), text.substr(colon + 1), false};
}

Parsed<model::Endpoint> parse_endpoint(std::string_view text, std::size_t least_port) {
  const auto parts = split_host(text);
  if (!parts) return std::unexpected(parts.error());
  const auto port = whole_number(parts->port);
  if (!port || *port < least_port || *port > 65535) {
    return wrong("port {} is not a number from {} to 65535", shown(parts->port), least_port);
  }
  model::Endpoint endpoint{"", static_cast<std::uint16_t>(*port)};
  if (parts->brackets) {
    const auto address = canonical_ipv6(std::string(parts->host));
    if (!address) return wrong("{} is not an IPv6 address", shown(parts->host));
    endpoint.host = *address;
  } else {
    auto host = parse_host(parts->host);
    if (!host) return std::unexpected(host.error());
    endpoint.host = *std::move(host);
  }
  return endpoint;
}

// Parses `rest`, the part of `url` after its scheme.
Parsed<model::Endpoint> parse_authority(std::string_view url, std::string_view rest) {
  if (rest.find('@') != rest.npos) return wrong("must not hold a user or password");
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != rest.npos) {
    return wrong("{} must end after the port; the path is chosen by request", shown(url));
  }
  return parse_endpoint(rest, 1);
}

// Letters to add, leave out, replace or swap with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // for the letters of `a` up to one
  std::vector<std::size_t> above(row.size());  // for those before it
  std::vector<std::size_t> second(row.size());
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    second.swap(above);
    above.swap(row);
    row[0] = i;
    const char letter = lower(a[i - 1]);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = above[j - 1] + (letter == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && letter == b[j - 2] && lower(a[i - 2]) == b[j - 1])
        row[j] = std::min(row[j], second[j - 2] + 1);
    }
  }
  return row.back();
}

std::optional<double> decimal(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (text.empty() || stop != end || error != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace

Parsed<std::chrono::milliseconds> parse_duration_or_zero(std::string_view text) {
  constexpr std::uint64_t kDay = 24 * 3'600'000;
  if (whole_number(text)) {
    return wrong("{} has no unit; write {}ms, {}s or {}m", shown(text), text, text, text);
  }
  if (text.starts_with('-')) return wrong("{} must not be below zero", shown(text));
  const auto value = quantity(text, kTimeUnits);
  if (!value) {
    return wrong("{} is not a duration; write a whole number and a unit: 500ms, 2s, 1m or 1h",
                 shown(text));
  }
  if (*value > kDay) return wrong("{} is longer than a day; write 24h or less", shown(text));
  return std::chrono::milliseconds(*value);
}

Parsed<std::chrono::milliseconds> parse_duration(std::string_view text) {
  auto value = parse_duration_or_zero(text);
  if (text.starts_with('-') || (value && value->count() == 0)) {
    return wrong("{} must be above zero", shown(text));
  }
  return value;
}

Parsed<std::size_t> parse_size(std::string_view text) {
  if (text.starts_with('-')) return wrong("{} must be above zero", shown(text));
  const auto value = quantity(text, kSizeUnits);
  if (!value) {
    return wrong("{} is not a size; write bytes (65536) or 64KiB, 8MiB, 1GiB", shown(text));
  }
  if (*value == 0) return wrong("{} must be above zero", shown(text));
  if (*value > 1ULL << 40) return wrong("{} is more than 1024GiB", shown(text));
  return *value;
}

Parsed<std::size_t> parse_number(std::string_view text, std::size_t least, std::size_t most) {
  const auto value = whole_number(text);
  if (!value || *value < least || *value > most) {
    return wrong("{} is not a whole number from {} to {}", shown(text), least, most);
  }
  return *value;
}

Parsed<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return wrong("{} is neither true nor false", shown(text));
}

Parsed<std::uint16_t> parse_port(std::string_view text) {
  const auto value = parse_number(text, 1, 65535);
  if (!value) return std::unexpected(value.error());
  return static_cast<std::uint16_t>(*value);
}

Parsed<model::Endpoint> parse_listen_address(std::string_view text) {
  if (text.find("://") != text.npos) return wrong("write host:port, without a scheme");
  if (text.starts_with(':') && whole_number(text.substr(1))) {
    return wrong("has no host; write 0.0.0.0{} for every address, 127.0.0.1{} for this machine",
                 text, text);
  }
  return parse_endpoint(text, 0);
}

Parsed<model::Endpoint> parse_worker_url(std::string_view text) {
  if (text.starts_with("https://")) {
    return wrong("https:// to workers is not available in this version; write http://host:port");
  }
  if (!text.starts_with("http://")) return wrong("{} must be http://host:port", shown(text));
  return parse_authority(text, text.substr(7));
}

Parsed<ServerUrl> parse_server_url(std::string_view text) {
  const bool tls = text.starts_with("https://");
  if (!tls && !text.starts_with("http://")) {
    return wrong("{} must be http://host:port or https://host:port", shown(text));
  }
  auto endpoint = parse_authority(text, text.substr(tls ? 8 : 7));
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  return ServerUrl{*std::move(endpoint), tls};
}

Parsed<std::string> parse_name(std::string_view text) {
  if (text.empty()) return wrong("must not be empty");
  if (std::ranges::any_of(text, is_control) || text.starts_with(' ') || text.ends_with(' ')) {
    return wrong("{} must not have control characters, or blanks at its ends", shown(text));
  }
  return std::string(text);
}

Parsed<std::string> parse_worker_id(std::string_view text) {
  if (text.empty()) return wrong("must not be empty");
  if (text.size() > 256) return wrong("{} is longer than 256 bytes", shown(text));
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; })) {
    return wrong("{} must be visible ASCII without blanks", shown(text));
  }
  return std::string(text);
}

Parsed<model::Endpoint> parse_peer_address(std::string_view text) {
  if (text.find("://") != text.npos) return wrong("write host:port, without a scheme");
  return parse_endpoint(text, 1);
}

Parsed<model::Network> parse_network(std::string_view text) {
  if (const auto network = model::parse_network(text)) return *network;
  return wrong(
      "{} is not an address or a network; write 10.0.0.1, 10.0.0.0/8 or fd00::/8, without bits "
      "after the prefix",
      shown(text));
}

Parsed<double> parse_fraction(std::string_view text, double most) {
  const auto value = decimal(text);
  if (!value || !(*value >= 0 && *value <= most)) {
    return wrong("{} is not a number from 0 to {}", shown(text), most);
  }
  return *value;
}

Parsed<double> parse_weight(std::string_view text) {
  const auto value = decimal(text);
  if (!value || !(*value > 0 && *value <= 100)) {
    return wrong("{} is not a number above 0 and up to 100", shown(text));
  }
  return *value;
}

Parsed<std::string> parse_zmq_endpoint(std::string_view text) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kIpc = "ipc://";
  if (text.starts_with(kIpc) && text.size() > kIpc.size()) return std::string(text);
  if (!text.starts_with(kTcp)) {
    return wrong("{} is no ZeroMQ endpoint; write tcp://host:port or ipc:///path", shown(text));
  }
  std::string_view rest = text.substr(kTcp.size());
  // Any address of this host, which is no name to connect to.
  const std::string host =
      rest.starts_with("*:") ? fmt::format("0.0.0.0{}", rest.substr(1)) : std::string(rest);
  if (const auto endpoint = parse_endpoint(host, 1); !endpoint)
    return wrong("{}", endpoint.error());
  return std::string(text);
}

Parsed<std::string> parse_path(std::string_view text) {
  if (text.empty()) return wrong("must name a file");
  return std::string(text);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::size_t cut = std::min(text.size(), kMost);
  // Between characters, so that a message stays UTF-8.
  while (cut > 0 && cut < text.size() && (text[cut] & 0xC0) == 0x80) --cut;
  std::string visible(text.substr(0, cut));
  std::ranges::replace_if(visible, is_control, '?');
  return fmt::format("'{}{}'", visible, text.size() > kMost ? "…" : "");
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  const std::size_t tolerance = std::max<std::size_t>(1, text.size() / 3);
  std::string_view best;
  std::size_t best_distance = tolerance + 1;
  for (const std::string_view candidate : candidates) {
    if (text.size() > candidate.size() + tolerance) continue;
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || text.size() < 2) return best;
  const auto begins = [text](std::string_view candidate) { return candidate.starts_with(text); };
  const auto cut = std::ranges::find_if(candidates, begins);
  const bool only = cut != candidates.end() && std::ranges::count_if(candidates, begins) == 1;
  return only ? *cut : std::string_view();
}

std::string unknown_choice(std::string_view text, std::span<const std::string_view> names) {
  if (const auto near = nearest(text, names); !near.empty())
    return fmt::format("unknown {}; did you mean {}?", shown(text), near);
  return fmt::format("unknown {}; write one of {}", shown(text), fmt::join(names, ", "));
}

}  // namespace baton::config
