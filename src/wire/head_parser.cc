// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/head_parser.h"

#include <fmt/format.h>
#include <llhttp.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace baton::wire {
namespace {

constexpr std::size_t kUsualFields = 16;
// Several times the fields of any client or proxy. Each field is compared with dozens of names, and
// with those that Connection names.
constexpr std::size_t kMostFields = 512;
constexpr std::size_t kLongestConnection = 1024;

// Collects llhttp's callbacks. The head is one piece of memory, so a name or a value that comes in
// several calls is still one range.
struct Collector {
  std::string_view target;
  std::string_view name;
  std::string_view value;
  Headers headers;
  int hosts = 0;
  int transfer_encodings = 0;
  std::size_t connection_bytes = 0;
  bool bad_name = false;
};

Collector& collector(llhttp_t* parser) { return *static_cast<Collector*>(parser->data); }

// Most names differ in size already.
bool is_named(std::string_view name, std::string_view wanted) {
  return name.size() == wanted.size() && equal_ignoring_case(name, wanted);
}

void extend(std::string_view& range, const char* at, std::size_t size) {
  const char* begin = range.empty() ? at : range.data();
  range = {begin, static_cast<std::size_t>(at + size - begin)};
}

int on_url(llhttp_t* parser, const char* at, std::size_t size) {
  extend(collector(parser).target, at, size);
  return HPE_OK;
}

int on_header_field(llhttp_t* parser, const char* at, std::size_t size) {
  extend(collector(parser).name, at, size);
  return HPE_OK;
}

int on_header_value(llhttp_t* parser, const char* at, std::size_t size) {
  extend(collector(parser).value, at, size);
  return HPE_OK;
}

int on_header_value_complete(llhttp_t* parser) {
  Collector& found = collector(parser);
  // llhttp lets empty names and names with spaces pass.
  if (found.name.empty() || found.name.contains(' ')) found.bad_name = true;
  const auto last = found.value.find_last_not_of(" \t");
  found.headers.add(found.name, found.value.substr(0, last + 1));
  if (is_named(found.name, "host")) ++found.hosts;
  if (is_named(found.name, "connection")) found.connection_bytes += found.value.size();
  if (is_named(found.name, "transfer-encoding")) ++found.transfer_encodings;
  found.name = {};
  found.value = {};
  return HPE_OK;
}

// Bodies, upgrades and CONNECT are not llhttp's business: it never sees a byte past the head.
int on_headers_complete(llhttp_t*) { return HPE_PAUSED; }

const llhttp_settings_t& settings() {
  static const llhttp_settings_t instance = [] {
    llhttp_settings_t made;
    llhttp_settings_init(&made);
    made.on_url = on_url;
    made.on_header_field = on_header_field;
    made.on_header_value = on_header_value;
    made.on_header_value_complete = on_header_value_complete;
    made.on_headers_complete = on_headers_complete;
    return made;
  }();
  return instance;
}

// Runs llhttp over the head and takes the parts common to requests and responses.
template <class Head>
Result<void> read_fields(llhttp_type_t type, Errc code, Errc too_much, std::string_view text,
                         Collector& found, llhttp_t& parser, Head& head) {
  found.headers.reserve(kUsualFields, text.size());
  llhttp_init(&parser, type, &settings());
  parser.data = &found;
  if (llhttp_execute(&parser, text.data(), text.size()) != HPE_PAUSED) {
    const char* reason = llhttp_get_error_reason(&parser);
    return fail(code, fmt::format("malformed HTTP head: {}",
                                  reason != nullptr ? reason : "it does not end where it should"));
  }
  if (found.bad_name) {
    return fail(code, "malformed HTTP head: invalid header name, or white space before its colon");
  }
  if (found.headers.size() > kMostFields) {
    return fail(Error(too_much, fmt::format("an HTTP head has at most {} fields", kMostFields))
                    .with_limit(Limit::HeaderBytes));
  }
  if (found.connection_bytes > kLongestConnection) {
    return fail(Error(too_much, fmt::format("Connection has at most {} bytes", kLongestConnection))
                    .with_limit(Limit::HeaderBytes));
  }
  head.headers = std::move(found.headers);
  head.minor_version = parser.http_minor;
  if ((parser.flags & F_CONTENT_LENGTH) != 0) head.content_length = parser.content_length;
  // llhttp already refused repeated lengths, and a length beside a transfer coding.
  if (found.transfer_encodings != 0) {
    if (head.minor_version == 0) {
      return fail(code, "malformed HTTP head: Transfer-Encoding in HTTP/1.0");
    }
    if (found.transfer_encodings > 1 ||
        !equal_ignoring_case(*head.headers.find("transfer-encoding"), "chunked")) {
      return fail(code, "malformed HTTP head: the only Transfer-Encoding accepted is `chunked`");
    }
    head.chunked = true;
  }
  head.keep_alive = head.minor_version == 1 ? !head.headers.has_token("connection", "close")
                                            : head.headers.has_token("connection", "keep-alive");
  return {};
}

bool is_known_version(std::string_view version) {
  return version == "HTTP/1.1" || version == "HTTP/1.0";
}

// `METHOD SP target SP version`, with exactly these two spaces. Returns what is wrong, or nothing.
std::string_view find_request_line_problem(std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == last || line.find(' ', first + 1) != last || line.find('\t') != line.npos) {
    return "the request line must be method, target and version with one space between them";
  }
  if (!is_known_version(line.substr(last + 1))) return "the HTTP version must be 1.0 or 1.1";
  return {};
}

// The target in origin form; nullopt where it has no form that fits the method.
std::optional<std::string> origin_form(std::string_view method, std::string_view target) {
  if (target.starts_with('/')) return std::string(target);
  if (method == "CONNECT") return std::string(target);
  if (target == "*") {
    return method == "OPTIONS" ? std::optional<std::string>(target) : std::nullopt;
  }
  const auto scheme = target.substr(0, target.find("://"));
  if (!equal_ignoring_case(scheme, "http") && !equal_ignoring_case(scheme, "https")) {
    return std::nullopt;
  }
  const auto authority = scheme.size() + std::string_view("://").size();
  const auto end = target.find_first_of("/?#", authority);
  if (end == authority || authority >= target.size()) return std::nullopt;
  if (end == target.npos) return "/";
  return target[end] == '/' ? std::string(target.substr(end))
                            : "/" + std::string(target.substr(end));
}

}  // namespace

Result<RequestHead> parse_request_head(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\r'));
  if (const auto problem = find_request_line_problem(line); !problem.empty()) {
    return fail(Errc::InvalidRequest, fmt::format("malformed HTTP head: {}", problem));
  }
  RequestHead head;
  Collector found;
  llhttp_t parser;
  if (auto read = read_fields(HTTP_REQUEST, Errc::InvalidRequest, Errc::HeadersTooLarge, text,
                              found, parser, head);
      !read) {
    return fail(std::move(read.error()));
  }
  if (found.hosts > 1) return fail(Errc::InvalidRequest, "malformed HTTP head: more than one Host");
  if (found.hosts == 0 && head.minor_version == 1) {
    return fail(Errc::InvalidRequest, "malformed HTTP head: HTTP/1.1 needs a Host");
  }
  head.method = line.substr(0, line.find(' '));
  auto target = origin_form(head.method, found.target);
  if (!target) return fail(Errc::InvalidRequest, "malformed HTTP head: invalid request target");
  head.target = std::move(*target);
  if (const auto expect = head.headers.find("expect"); expect && head.minor_version == 1) {
    head.expect_continue = equal_ignoring_case(*expect, "100-continue");
  }
  return head;
}

Result<ResponseHead> parse_response_head(std::string_view text) {
  constexpr std::string_view kStatusPattern = "HTTP/1.x ###";
  if (text.size() < kStatusPattern.size() || !is_known_version(text.substr(0, text.find(' ')))) {
    return fail(Errc::EngineProtocol, "malformed HTTP head: the HTTP version must be 1.0 or 1.1");
  }
  ResponseHead head;
  Collector found;
  llhttp_t parser;
  if (auto read = read_fields(HTTP_RESPONSE, Errc::EngineProtocol, Errc::EngineProtocol, text,
                              found, parser, head);
      !read) {
    return fail(std::move(read.error()));
  }
  head.status = parser.status_code;
  if (head.status < 100 || head.status > 599) {
    return fail(Errc::EngineProtocol, "malformed HTTP head: no such status code");
  }
  return head;
}

}  // namespace baton::wire
