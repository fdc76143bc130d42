// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/connection.h"

#include "net/await.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>

namespace baton::net {
namespace {

namespace asio = boost::asio;

// How long a request runs before its client is watched, and how often a client that has already
// sent more is looked at.
constexpr std::chrono::milliseconds kWatchAfter{50};

constexpr std::chrono::milliseconds kTlsGoodbye{500};

constexpr std::size_t kMaxPieces = 16;
using Buffers = boost::container::static_vector<asio::const_buffer, kMaxPieces>;

// The pieces from byte `skip` on, as many as one system call takes.
Buffers remaining(std::span<const std::string_view> pieces, std::size_t skip) {
  Buffers buffers;
  for (const std::string_view piece : pieces) {
    if (buffers.size() == buffers.capacity()) break;
    if (skip >= piece.size()) {
      skip -= piece.size();
      continue;
    }
    buffers.emplace_back(piece.data() + skip, piece.size() - skip);
    skip = 0;
  }
  return buffers;
}

// One wait of a write, charged to the patience; null: no bound.
class WriteWait {
 public:
  WriteWait(const Deadlines& deadlines, Deadline& deadline, std::chrono::milliseconds timeout,
            PeerPatience* patience)
      : deadlines_(deadlines), patience_(patience), since_(deadlines.lived()) {
    deadline.arm(patience ? std::min(timeout, patience->left()) : timeout);
  }
  void over(std::size_t taken) const {
    if (!patience_) return;
    const auto waited = deadlines_.lived() - since_;
    patience_->spend(std::chrono::duration_cast<std::chrono::milliseconds>(waited), taken);
  }

 private:
  const Deadlines& deadlines_;
  PeerPatience* patience_;
  std::chrono::steady_clock::time_point since_;
};

std::size_t total_size(std::span<const std::string_view> pieces) {
  std::size_t total = 0;
  for (const std::string_view piece : pieces) total += piece.size();
  return total;
}

// To copy so little is cheaper than to have the kernel go through a list of pieces.
constexpr std::size_t kJoined = 4096;

std::size_t send_joined(int socket, std::span<const std::string_view> pieces, std::size_t total,
                        boost::system::error_code& error) {
  std::array<char, kJoined> joined;
  char* end = joined.data();
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;
    std::memcpy(end, piece.data(), piece.size());
    end += piece.size();
  }
  ssize_t sent = 0;
  do {
    if (total > 0) sent = ::send(socket, joined.data(), total, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  error.assign(errno, boost::system::system_category());
  return 0;
}

}  // namespace

Connection::Connection(tcp::socket socket, Deadlines& deadlines, asio::ssl::context* tls)
    : socket_(std::move(socket)),
      deadlines_(deadlines),
      deadline_(deadlines, [this] { on_timeout(); }) {
  boost::system::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  if (tls) tls_ = std::make_unique<TlsStream>(socket_, *tls);
}

Connection::~Connection() {
  if (waiter_) *waiter_ = nullptr;
}

awaitable<IoResult> Connection::handshake(std::chrono::milliseconds timeout) {
  if (!tls_) co_return IoResult{IoStatus::Ok, 0};
  deadline_.arm(timeout);
  const auto [error] = co_await tls_->async_handshake(TlsStream::server, kAwait);
  co_return settle(error, 0);
}

awaitable<IoResult> Connection::handshake_with(const std::string& host,
                                               std::chrono::milliseconds timeout) {
  if (!tls_) co_return IoResult{IoStatus::Ok, 0};
  SSL* const ssl = tls_->native_handle();
  tls_->set_verify_mode(asio::ssl::verify_peer);
  // Checked by OpenSSL itself and not by Asio's callback: a wrong name is then reported as such.
  boost::system::error_code no_address;
  asio::ip::make_address(host, no_address);
  if (!no_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
  } else {
    SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  deadline_.arm(timeout);
  const auto [error] = co_await tls_->async_handshake(TlsStream::client, kAwait);
  co_return settle(error, 0);
}

std::string Connection::certificate_problem() const {
  const long verdict = tls_ ? SSL_get_verify_result(tls_->native_handle()) : X509_V_OK;
  return verdict == X509_V_OK ? std::string() : X509_verify_cert_error_string(verdict);
}

awaitable<Connection::ReadEnd> Connection::begin_read(std::span<char> into,
                                                      std::chrono::milliseconds timeout) {
  deadline_.arm(timeout);
  const auto buffer = asio::buffer(into.data(), into.size());
  return tls_ ? tls_->async_read_some(buffer, kAwait) : socket_.async_read_some(buffer, kAwait);
}

awaitable<IoResult> Connection::read_some(std::span<char> into, std::chrono::milliseconds timeout) {
  if (state_ != IoStatus::Ok) co_return IoResult{state_, 0};
  const ReadEnd end = co_await begin_read(into, timeout);
  co_return end_read(end);
}

IoResult Connection::try_read(std::span<char> into) {
  if (state_ != IoStatus::Ok) return {state_, 0};
  if (tls_) return {IoStatus::Ok, 0};
  boost::system::error_code error;
  const std::size_t size = socket_.read_some(asio::buffer(into.data(), into.size()), error);
  if (error == asio::error::would_block) return {IoStatus::Ok, 0};
  return settle(error, size);
}

awaitable<IoResult> Connection::wait_readable(std::chrono::milliseconds timeout) {
  if (state_ != IoStatus::Ok) co_return IoResult{state_, 0};
  // Bytes may wait inside the TLS layer, where the socket does not show them.
  if (tls_) co_return IoResult{IoStatus::Ok, 0};
  deadline_.arm(timeout);
  const auto [error] = co_await socket_.async_wait(tcp::socket::wait_read, kAwait);
  co_return settle(error, 0);
}

IoResult Connection::try_write(std::span<const std::string_view> pieces) {
  if (state_ != IoStatus::Ok) return {state_, 0};
  if (tls_) return {IoStatus::Ok, 0};
  boost::system::error_code error;
  const std::size_t total = total_size(pieces);
  const std::size_t written = total <= kJoined
                                  ? send_joined(socket_.native_handle(), pieces, total, error)
                                  : socket_.write_some(remaining(pieces, 0), error);
  if (error == asio::error::would_block) return {IoStatus::Ok, 0};
  return settle_write(error, written);
}

awaitable<IoResult> Connection::write(std::span<const std::string_view> pieces,
                                      std::chrono::milliseconds timeout, PeerPatience* patience) {
  const IoResult begun = try_write(pieces);
  if (begun.status != IoStatus::Ok || begun.size == total_size(pieces)) co_return begun;
  co_return co_await write_rest(pieces, begun.size, timeout, patience);
}

awaitable<IoResult> Connection::write_rest(std::span<const std::string_view> pieces,
                                           std::size_t written, std::chrono::milliseconds timeout,
                                           PeerPatience* patience) {
  if (tls_) co_return co_await write_tls(pieces, written, timeout, patience);
  const std::size_t total = total_size(pieces);
  while (written < total) {
    // Each piece of progress is a sign of life.
    const WriteWait wait(deadlines_, deadline_, timeout, patience);
    const auto [error, size] =
        co_await socket_.async_write_some(remaining(pieces, written), kAwait);
    written += size;
    wait.over(size);
    if (error) co_return settle_write(error, written);
  }
  co_return settle_write({}, written);
}

awaitable<IoResult> Connection::write_tls(std::span<const std::string_view> pieces,
                                          std::size_t written, std::chrono::milliseconds timeout,
                                          PeerPatience* patience) {
  // Pieces are joined to records: one record per piece would cost a system call each.
  constexpr std::size_t kRecord = 16 * 1024;
  const std::size_t total = total_size(pieces);
  while (written < total) {
    std::string record;
    for (const asio::const_buffer& buffer : remaining(pieces, written)) {
      const std::string_view piece(static_cast<const char*>(buffer.data()), buffer.size());
      record += piece.substr(0, kRecord - record.size());
    }
    const WriteWait wait(deadlines_, deadline_, timeout, patience);
    const auto [error, size] = co_await asio::async_write(*tls_, asio::buffer(record), kAwait);
    written += size;
    wait.over(size);
    if (error) co_return settle_write(error, written);
  }
  co_return settle_write({}, written);
}

IoResult Connection::settle_write(boost::system::error_code error, std::size_t size) {
  deadline_.disarm();
  if (state_ != IoStatus::Ok) return {state_, size};
  if (!error) return {IoStatus::Ok, size};
  error_ = error;
  return {IoStatus::Failed, size};
}

IoResult Connection::settle(boost::system::error_code error, std::size_t size) {
  deadline_.disarm();
  if (state_ != IoStatus::Ok) return {state_, size};  // a timeout or an abort ended the wait
  if (!error) return {IoStatus::Ok, size};
  error_ = error;
  // A TLS peer that closes without close_notify may have been cut off; it is treated as an end like
  // any other because HTTP framing tells a whole message from a part.
  const bool closed = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
  state_ = closed ? IoStatus::Closed : IoStatus::Failed;
  return {state_, size};
}

void Connection::on_timeout() {
  if (state_ != IoStatus::Ok) return;
  state_ = IoStatus::Timeout;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Connection::abort() {
  if (state_ != IoStatus::Ok) return;
  state_ = IoStatus::Aborted;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Connection::watch_peer(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  if (!watch_) watch_ = std::make_unique<Deadline>(deadlines_, [this] { look_at_peer(); });
  watch_->arm(kWatchAfter);
}

void Connection::unwatch_peer() {
  if (watch_) watch_->disarm();
  on_gone_ = nullptr;
}

bool Connection::peer_hung_up() {
  pollfd descriptor{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&descriptor, 1, 0) > 0;
}

void Connection::look_at_peer() {
  if (!on_gone_) return;
  if (peer_hung_up()) {
    const auto on_gone = std::exchange(on_gone_, nullptr);
    on_gone();
    return;
  }
  boost::system::error_code error;
  if (socket_.available(error) > 0) {
    // The next request is already here: readiness would not tell a close apart from it, so look
    // again later.
    watch_->arm(kWatchAfter);
    return;
  }
  if (waiter_) return;
  waiter_ = std::make_shared<Connection*>(this);
  socket_.async_wait(tcp::socket::wait_read,
                     [waiter = waiter_](boost::system::error_code wait_error) {
                       Connection* const self = *waiter;
                       if (!self) return;
                       self->waiter_.reset();
                       if (!wait_error) self->look_at_peer();
                     });
}

void Connection::recover() {
  if (state_ == IoStatus::Timeout) state_ = IoStatus::Ok;
}

void Connection::end_writing() {
  boost::system::error_code ignored;
  if (!tls_) socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

awaitable<void> Connection::close() {
  unwatch_peer();
  if (tls_ && state_ == IoStatus::Ok) {
    deadline_.arm(kTlsGoodbye);
    co_await tls_->async_shutdown(kAwait);
    deadline_.disarm();
  }
  abort();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

bool Connection::stale() {
  if (state_ != IoStatus::Ok) return true;
  pollfd descriptor{socket_.native_handle(), POLLIN | POLLRDHUP, 0};
  return ::poll(&descriptor, 1, 0) != 0;
}

std::size_t Connection::unacknowledged() {
  int bytes = 0;
  if (::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

}  // namespace baton::net
