// Rows about who may use the server: keys, TLS, CORS.
#include "settings/table.h"

namespace fermata::settings {
namespace {

constexpr Row rows[] = {
    {.names = {"--api-key"},
     .env = "LLAMA_API_KEY",
     .placeholder = "KEY",
     .help = "a request must carry one of these keys, as Authorization: Bearer KEY or X-Api-Key; "
             "separated by commas, or by repeating the flag. Other users of this machine see "
             "arguments: a variable or a file hides them",
     .default_text = "none",
     .group = Group::security,
     .separator = ',',
     .joins = true,
     .secret = true,
     .target = bind<&Settings::security, &SecuritySettings::api_keys>()},
    {.names = {"--api-key-file"},
     .env = "LLAMA_ARG_API_KEY_FILE",
     .placeholder = "FNAME",
     .help = "file with further keys, one a line",
     .default_text = "none",
     .group = Group::security,
     .target = bind<&Settings::security, &SecuritySettings::api_key_file>()},
    {.names = {"--ssl-key-file"},
     .env = "LLAMA_ARG_SSL_KEY_FILE",
     .placeholder = "FNAME",
     .help = "private key for TLS (PEM); with --ssl-cert-file the server speaks https only",
     .default_text = "none",
     .group = Group::security,
     .target = bind<&Settings::security, &SecuritySettings::ssl_key_file>()},
    {.names = {"--ssl-cert-file"},
     .env = "LLAMA_ARG_SSL_CERT_FILE",
     .placeholder = "FNAME",
     .help = "certificate for TLS (PEM), its chain behind it",
     .default_text = "none",
     .group = Group::security,
     .target = bind<&Settings::security, &SecuritySettings::ssl_cert_file>()},
    {.names = {"--cors-origins"},
     .env = "LLAMA_ARG_CORS_ORIGINS",
     .placeholder = "ORIGINS",
     .help = "origins whose web pages may use the server, comma-separated",
     .note = "* = all, localhost = those of this machine",
     .group = Group::security,
     .separator = ',',
     .target = bind<&Settings::security, &SecuritySettings::cors_origins>()},
    {.names = {"--cors-methods"},
     .env = "LLAMA_ARG_CORS_METHODS",
     .placeholder = "METHODS",
     .help = "methods that web pages may use, comma-separated",
     .group = Group::security,
     .target = bind<&Settings::security, &SecuritySettings::cors_methods>()},
    {.names = {"--cors-headers"},
     .env = "LLAMA_ARG_CORS_HEADERS",
     .placeholder = "HEADERS",
     .help = "headers that web pages may send, comma-separated",
     .note = "* = those they ask for",
     .group = Group::security,
     .target = bind<&Settings::security, &SecuritySettings::cors_headers>()},
    {.names = {"--cors-credentials"},
     .off_names = {"--no-cors-credentials"},
     .env = "LLAMA_ARG_CORS_CREDENTIALS",
     .help = "let web pages send credentials",
     .group = Group::security,
     .target = bind<&Settings::security, &SecuritySettings::cors_credentials>()},
};

}  // namespace

std::span<const Row> security_rows() { return rows; }

}  // namespace fermata::settings
