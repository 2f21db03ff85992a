-- A hold that was broken: the lock has a '!' behind the owner, so that no renewal finds it any more, and
-- beside it stands "token at", who and why, a line each, at in ms of this server's clock. When the next hold is
-- broken, too, that of the last one is kept aside, by its token: its holder may not have heard of it yet.
local function broken_key(token)
    return string.sub(KEYS[2], 1, -2) .. (token and 'b:' .. token or 'b')
end

-- When, by whom and why the hold with this token was broken; nothing if it was not.
local function broken_by(token)
    local text = redis.call('GET', broken_key())
    if text and token and string.match(text, '^%d+') ~= token then
        text = redis.call('GET', broken_key(token))
    end
    local of, at, by, why = string.match(text or '', '^(%d+) (%d+)\n([^\n]*)\n([^\n]*)$')
    if of == token then
        return at, by, why
    end
end
