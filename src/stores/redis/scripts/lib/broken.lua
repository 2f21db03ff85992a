-- A hold that was broken: the lock has a '!' behind the owner, so that no renewal finds it any more, and
-- beside it stands "token at", who and why, a line each, at in ms of this server's clock.
local function broken_key()
    return string.sub(KEYS[2], 1, -2) .. 'b'
end

-- When, by whom and why the hold with this token was broken; nothing if it was not.
local function broken_by(token)
    local text = redis.call('GET', broken_key())
    local of, at, by, why = string.match(text or '', '^(%d+) (%d+)\n([^\n]*)\n([^\n]*)$')
    if of == token then
        return at, by, why
    end
end
