// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/http_response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <utility>

namespace baton::http {
namespace {

constexpr std::string_view kChunkEnd = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";
// Time limit for writes after the request was given up.
constexpr std::chrono::milliseconds kLastPatience{1'000};

}  // namespace

std::string_view reason_phrase(int status) {
  static constexpr std::array<std::pair<int, std::string_view>, 25> kPhrases{
      {{200, "OK"},
       {201, "Created"},
       {204, "No Content"},
       {400, "Bad Request"},
       {401, "Unauthorized"},
       {403, "Forbidden"},
       {404, "Not Found"},
       {405, "Method Not Allowed"},
       {408, "Request Timeout"},
       {409, "Conflict"},
       {413, "Content Too Large"},
       {415, "Unsupported Media Type"},
       {417, "Expectation Failed"},
       {422, "Unprocessable Content"},
       {429, "Too Many Requests"},
       {431, "Request Header Fields Too Large"},
       {499, "Client Closed Request"},
       {500, "Internal Server Error"},
       {501, "Not Implemented"},
       {502, "Bad Gateway"},
       {503, "Service Unavailable"},
       {504, "Gateway Timeout"},
       {505, "HTTP Version Not Supported"},
       {507, "Insufficient Storage"},
       {529, "Overloaded"}}};
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return "Unknown";
}

std::string HttpResponse::head_text(int status, const wire::Headers& headers,
                                    std::string_view framing) {
  if (options_.closing && *options_.closing) options_.keep_alive = false;
  std::string head;
  head.reserve(384);
  head.append("HTTP/1.1 ").append(std::to_string(status)).append(" ");
  head.append(reason_phrase(status)).append("\r\n");
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto [name, value] = headers[i];
    head.append(name).append(": ").append(value).append("\r\n");
  }
  if (!options_.request_id.empty())
    head.append("X-Request-Id: ").append(options_.request_id).append("\r\n");
  head += framing;
  if (!options_.keep_alive) {
    head += "Connection: close\r\n";
  } else if (options_.http_1_0) {
    head += "Connection: keep-alive\r\n";
  }
  head += "\r\n";
  return head;
}

Result<void> HttpResponse::result_of(net::IoResult written) {
  if (written.status == net::IoStatus::Ok) return {};
  return fail(Errc::ClientGone, written.status == net::IoStatus::Timeout
                                    ? "the client took too little of its answer for too long"
                                    : "the client closed the connection");
}

awaitable<Result<void>> HttpResponse::put(std::span<const std::string_view> pieces) {
  writing_ = true;
  const net::IoResult written =
      co_await connection_.write(pieces, options_.write_timeout, &patience_);
  writing_ = false;
  co_return result_of(written);
}

Result<void> HttpResponse::complete(Result<void> written) {
  if (!written) return written;
  complete_ = true;
  // The head may have promised to keep the connection.
  if (given_up_) connection_.end_writing();
  return written;
}

bool HttpResponse::give_up() {
  if (complete_) return false;
  given_up_ = true;
  options_.keep_alive = false;
  options_.write_timeout = std::min(options_.write_timeout, kLastPatience);
  patience_ = net::PeerPatience(options_.write_timeout);
  if (writing_) connection_.hasten(options_.write_timeout);
  return !writing_;
}

awaitable<Result<void>> HttpResponse::respond(int status, const wire::Headers& headers,
                                              std::string_view body) {
  const std::string head = head_text(
      status, headers,
      status == 204 ? std::string() : "Content-Length: " + std::to_string(body.size()) + "\r\n");
  const std::array<std::string_view, 2> pieces{head,
                                               options_.head_only ? std::string_view() : body};
  co_return complete(co_await put(pieces));
}

awaitable<Result<void>> HttpResponse::begin(int status, const wire::Headers& headers) {
  // HTTP/1.0 knows no chunks: the answer ends with the connection.
  if (options_.http_1_0) options_.keep_alive = false;
  pending_head_ =
      head_text(status, headers, options_.http_1_0 ? "" : "Transfer-Encoding: chunked\r\n");
  co_return Result<void>{};
}

class HttpResponse::Framed {
 public:
  Framed(const HttpResponse& response, std::string_view piece) {
    if (response.options_.http_1_0) {
      pieces_ = {response.pending_head_, piece};
      return;
    }
    // The least there is to do, as it is done for every event of every stream.
    char* const end = std::to_chars(size_line_.data(), size_line_.data() + kMostDigits,
                                    piece.size(), kHexadecimal)
                          .ptr;
    std::ranges::copy(kChunkEnd, end);
    const auto size = static_cast<std::size_t>(end - size_line_.data()) + kChunkEnd.size();
    pieces_ = {response.pending_head_, {size_line_.data(), size}, piece, kChunkEnd};
  }
  Framed(const Framed&) = delete;
  Framed& operator=(const Framed&) = delete;

  std::span<const std::string_view> pieces() const { return pieces_; }
  std::size_t size() const {
    std::size_t total = 0;
    for (const std::string_view piece : pieces_) total += piece.size();
    return total;
  }

 private:
  static constexpr std::size_t kMostDigits = 2 * sizeof(std::size_t);
  static constexpr int kHexadecimal = 16;
  std::array<char, kMostDigits + kChunkEnd.size()> size_line_;
  std::array<std::string_view, 4> pieces_;
};

std::optional<Result<void>> HttpResponse::write_now(std::string_view piece) {
  if (piece.empty()) return Result<void>{};
  const Framed framed(*this, piece);
  const net::IoResult written = connection_.try_write(framed.pieces());
  taken_ = written.size;
  if (written.status == net::IoStatus::Ok && written.size < framed.size()) return std::nullopt;
  if (!pending_head_.empty()) std::string().swap(pending_head_);
  return result_of(written);
}

awaitable<Result<void>> HttpResponse::write_rest(std::string_view piece) {
  const Framed framed(*this, piece);
  writing_ = true;
  const net::IoResult written =
      co_await connection_.write_rest(framed.pieces(), taken_, options_.write_timeout, &patience_);
  writing_ = false;
  std::string().swap(pending_head_);
  co_return result_of(written);
}

// A client that keeps up costs one system call and no suspension.
awaitable<Result<void>> HttpResponse::write(std::string_view piece) {
  if (const auto written = write_now(piece)) co_return *written;
  co_return co_await write_rest(piece);
}

awaitable<Result<void>> HttpResponse::end() {
  const std::string head = std::exchange(pending_head_, {});
  const std::array<std::string_view, 2> pieces{head,
                                               options_.http_1_0 ? std::string_view() : kLastChunk};
  co_return complete(co_await put(pieces));
}

}  // namespace baton::http
