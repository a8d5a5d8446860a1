"""Files of other programs as memories: chats, mails, subtitles, notes and exports of other memory systems."""
